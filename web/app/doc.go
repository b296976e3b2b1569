// Package app holds the web app as it was built, so that a program without Node.js beside it can
// serve it. The sources are TypeScript in src, on the web SDK alone:
//
//	src/view    what is shown, worked out from the SDK's snapshots: pure, tested without a browser
//	src/work    what talks to the server, the screen and the browser
//	src/parts   the components that draw the one and call the other
//	dist        what `npm run build` made of them; dist/sources.txt says of which sources
//
// The built files are committed. A test hashes the sources and fails when dist was made of others;
// `make web` builds once more and compares every byte.
package app
