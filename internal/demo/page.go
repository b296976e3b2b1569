package demo

import "net/url"

// Link is an address that signs in, at the page of the web app. The token is in the fragment, so that
// it stays in the browser; device is what the page calls itself, empty for both of a person's devices
// beside each other.
func Link(page, token, device string) string {
	v := url.Values{"token": {token}}
	if device == "" {
		return page + "?two#" + v.Encode()
	}
	v.Set("device", device)
	return page + "#" + v.Encode()
}
