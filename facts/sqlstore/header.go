package sqlstore

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/tidemark-im/tidemark/facts"
)

// Offsets in the first page of a SQLite file, which never change.
const (
	sqliteMagic         = "SQLite format 3\x00"
	sqliteApplicationAt = 68
	sqliteRootAt        = 100 // root page of the table of all objects
	sqliteCellsAt       = 103
	sqliteHeaderBytes   = 105
	sqliteInterior      = 5 // kind of a root page that has pages below it
)

// sqliteForeign refuses a database of another program by its first bytes, before it is opened:
// opening it would already change how it is kept, or leave files beside it. Whatever else is
// wrong with a file is found when it is opened.
func sqliteForeign(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return nil // opening it says what is wrong
	}
	defer f.Close() //nolint:errcheck // it was only read
	head := make([]byte, sqliteHeaderBytes)
	if _, err := io.ReadFull(f, head); err != nil || string(head[:len(sqliteMagic)]) != sqliteMagic {
		return nil // as above
	}
	app := binary.BigEndian.Uint32(head[sqliteApplicationAt:])
	empty := head[sqliteRootAt] != sqliteInterior && binary.BigEndian.Uint16(head[sqliteCellsAt:]) == 0
	if app == sqliteApplicationID || empty {
		return nil
	}
	return foreign(int64(app))
}

func foreign(app int64) error {
	return fmt.Errorf("%w: %w: application id %#x", facts.ErrUnavailable, ErrCorrupt, app)
}
