// Package strict reads JSON that was sent by somebody else, and takes nothing that it does not
// understand completely.
//
// Decode first checks the text against the shape of the Go value: one pass over the bytes, with
// no state but the position, the depth and the keys of the open objects. Refused are invalid
// UTF-8, unpaired surrogates, a second value, a key that stands twice, an unknown or differently
// spelled key, a missing one, null where the field is no pointer, a fraction or exponent where an
// integer belongs, a word outside an enumeration, a list that is too long, and nesting beyond a
// limit. Then encoding/json fills the value in.
//
// The shape follows from the type and its tags: a field is required unless its json tag says
// omitempty or omitzero, and may carry enum:"a,b" and maxItems:"10". json.RawMessage takes any
// value. A type with an UnmarshalJSON of its own judges its value itself; its errors come
// through unchanged, so that callers can match them.
//
// Every refusal is an *Error that names the place. Types that cannot be described, such as maps
// and interfaces, panic when they are first used: they are a mistake of ours.
package strict
