import { useState } from "preact/hooks";
import { type Person, hueOf, initialsOf, shapeOf } from "../view/people.js";

/** The picture of somebody, or their initials. It is decoration: names are text beside it. */
export function Avatar({ person, size = "m" }: { person: Person; size?: "s" | "m" }) {
  const [broken, setBroken] = useState("");
  const picture = person.avatar && person.avatar !== broken;
  return (
    <span
      class={`avatar ${shapeOf(person)} hue-${hueOf(person.id)} size-${size}`}
      aria-hidden="true"
    >
      {picture ? (
        <img src={person.avatar} alt="" onError={() => setBroken(person.avatar)} />
      ) : (
        initialsOf(person.name)
      )}
    </span>
  );
}
