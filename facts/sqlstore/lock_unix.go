//go:build unix

package sqlstore

import (
	"errors"
	"os"
)

// discardFile removes a locked file, and only then unlocks it: in this order nobody can lock the
// file at the path while it is being removed.
func discardFile(f *os.File) error {
	return errors.Join(os.Remove(f.Name()), f.Close())
}
