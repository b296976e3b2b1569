package httpapi

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
)

// paging are the parameters of a list.
type paging struct {
	PageToken string `query:"pageToken" doc:"next of the page before"`
	Limit     int    `query:"limit" max:"500" doc:"At most so many items. Default 100"`
}

func (p *paging) limit() int {
	if p.Limit == 0 {
		return DefaultPage
	}
	return p.Limit
}

// after decodes the page token of a list. A token belongs to one list with its filters, which
// its checksum covers; it is no secret.
func (p *paging) after(list string) (string, error) {
	if p.PageToken == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(p.PageToken)
	if err != nil || len(raw) < 4 ||
		binary.BigEndian.Uint32(raw) != pageSum(list, string(raw[4:])) {
		return "", refuse(CodeInvalidRequest, "pageToken is none of this list")
	}
	return string(raw[4:]), nil
}

// pageToken makes the token of the page after an item.
func pageToken(list, after string) string {
	raw := binary.BigEndian.AppendUint32(nil, pageSum(list, after))
	return base64.RawURLEncoding.EncodeToString(append(raw, after...))
}

func pageSum(list, after string) uint32 {
	return crc32.ChecksumIEEE([]byte(list + "\x00" + after))
}

// cut takes the page out of limit + 1 items and reports whether there is another one.
func cut[T any](items []T, limit int) ([]T, bool) {
	if len(items) > limit {
		return items[:limit], true
	}
	return items, false
}
