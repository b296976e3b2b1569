// Package chaos kills servers and judges what they leave.
package chaos
