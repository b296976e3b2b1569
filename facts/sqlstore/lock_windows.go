package sqlstore

import "os"

// discardFile closes a file and removes it. A file that somebody else has opened meanwhile cannot
// be removed here, and stays for them.
func discardFile(f *os.File) error {
	err := f.Close()
	_ = os.Remove(f.Name())
	return err
}
