import { render } from "preact";
import { useState } from "preact/hooks";
import { Shell } from "./parts/shell.js";
import { SignIn } from "./parts/signin.js";
import { type Account, Accounts } from "./work/accounts.js";
import { App } from "./work/app.js";
import { PageIcon } from "./work/icon.js";

/** The server's address: the app lies one step below it. */
const base = new URL("..", location.href).href.replace(/\/$/, "");
const framed = window.top !== window;
const icon = new PageIcon();

/** Two devices of one person beside each other, each in a frame that keeps its own reads. */
function SideBySide({ token }: { token: string }) {
  const address = (device: string) => `./#${new URLSearchParams({ token, device })}`;
  return (
    <div class="two">
      {["laptop", "phone"].map((device) => (
        <iframe key={device} title={`Your ${device}`} src={address(device)} />
      ))}
    </div>
  );
}

function Page({ accounts }: { accounts: Accounts }) {
  const start = () => {
    const account = accounts.current;
    return account ? new App(account, base, framed, icon) : null;
  };
  const [app, setApp] = useState(start);
  const change = (account: Account | null) => {
    void app?.close();
    if (account) accounts.use(account);
    setApp(account ? start() : null);
  };
  const done = (account: Account) => {
    accounts.add(account);
    setApp(start());
  };
  if (!app) {
    const back = accounts.current ? () => setApp(start()) : null;
    return <SignIn base={base} back={back} done={done} />;
  }
  return <Shell key={app.account.token} app={app} accounts={accounts} change={change} />;
}

const root = document.getElementById("app")!;
const accounts = new Accounts(sessionStorage, location, history, framed);
const two = new URLSearchParams(location.search).has("two") && !framed && accounts.current;
render(
  two ? <SideBySide token={two.token} /> : <Page accounts={accounts} />,
  root,
);
