package nostrx

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

var errDuplicate = errors.New("a member stands twice")

// members reads a JSON object into its members. A name that stands twice is an error, as is
// anything after the object.
func members(data []byte) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := begin(dec, '{'); err != nil {
		return nil, err
	}
	found := make(map[string]json.RawMessage)
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, ok := token.(string)
		if !ok {
			return nil, errors.New("a member without a name")
		}
		if _, twice := found[name]; twice {
			return nil, errDuplicate
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		found[name] = raw
	}
	return found, end(dec)
}

// elements reads a JSON array into its elements, at most limit of them.
func elements(data []byte, limit int) ([]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := begin(dec, '['); err != nil {
		return nil, err
	}
	var found []json.RawMessage
	for dec.More() {
		if len(found) == limit {
			return nil, fmt.Errorf("more than %d elements", limit)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		found = append(found, raw)
	}
	return found, end(dec)
}

// begin reads the bracket that a value must begin with.
func begin(dec *json.Decoder, bracket json.Delim) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	if token != bracket {
		return fmt.Errorf("it does not begin with %v", bracket)
	}
	return nil
}

// end reads the closing bracket and demands that nothing follows.
func end(dec *json.Decoder) error {
	if _, err := dec.Token(); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows it")
	}
	return nil
}
