package profile

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/pprof"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	enough  = 50      // samples
	patient = 1 << 22 // repetitions of the work
)

// Share runs the work until the profile has enough samples and returns the share, 0 to 1, of
// those that were taken in the functions whose names end with the suffix, or in what they called,
// the scheduler that interrupted them included.
func Share(ctx context.Context, suffix string, work func()) (share float64, samples int64, err error) {
	runtime.GC() // what was before must not be collected during it
	for times := 4; times <= patient; times *= 4 {
		raw, err := record(times, work)
		if err != nil {
			return 0, 0, err
		}
		within, all, err := read(raw, suffix)
		if err != nil {
			return 0, 0, fmt.Errorf("read profile: %w", err)
		}
		if all >= enough {
			return float64(within) / float64(all), all, nil
		}
		if ctx.Err() != nil {
			return 0, 0, ctx.Err()
		}
	}
	return 0, 0, errors.New("the work is too short to be profiled")
}

func record(times int, work func()) ([]byte, error) {
	var zipped bytes.Buffer
	if err := pprof.StartCPUProfile(&zipped); err != nil {
		return nil, err
	}
	for range times {
		work()
	}
	pprof.StopCPUProfile()
	z, err := gzip.NewReader(&zipped)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// Numbers of the fields of the profile format that are read.
const (
	profileSample, profileLocation, profileFunction, profileStrings = 2, 4, 5, 6
	sampleLocations, sampleValues                                   = 1, 2
	locationID, locationLine, lineFunction                          = 1, 4, 1
	functionID, functionName                                        = 1, 2
)

// tables are the parts of a profile that names are found through.
type tables struct {
	samples   []sample
	locations map[uint64][]uint64 // functions, the innermost inlined one first
	functions map[uint64]uint64   // index of the name
	names     []string
}

type sample struct {
	stack []uint64 // locations
	count int64
}

func read(raw []byte, suffix string) (within, all int64, err error) {
	t := tables{locations: map[uint64][]uint64{}, functions: map[uint64]uint64{}}
	err = fields(raw, func(n protowire.Number, _ uint64, b []byte) error {
		switch n {
		case profileSample:
			return t.sample(b)
		case profileLocation:
			return t.location(b)
		case profileFunction:
			return t.function(b)
		case profileStrings:
			t.names = append(t.names, string(b))
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	for _, s := range t.samples {
		all += s.count
		if t.passes(s.stack, suffix) {
			within += s.count
		}
	}
	return within, all, nil
}

// passes reports that a stack goes through a function of the name.
func (t *tables) passes(stack []uint64, suffix string) bool {
	for _, at := range stack {
		for _, f := range t.locations[at] {
			if i := t.functions[f]; i < uint64(len(t.names)) && strings.HasSuffix(t.names[i], suffix) {
				return true
			}
		}
	}
	return false
}

func (t *tables) sample(b []byte) error {
	var s sample
	counted := false
	add := func(n protowire.Number, v uint64) {
		switch {
		case n == sampleLocations:
			s.stack = append(s.stack, v)
		case n == sampleValues && !counted:
			s.count, counted = int64(v), true // the first one is the number of samples
		}
	}
	err := fields(b, func(n protowire.Number, v uint64, packed []byte) error {
		if packed == nil {
			add(n, v)
		}
		for len(packed) > 0 {
			v, size := protowire.ConsumeVarint(packed)
			if size < 0 {
				return protowire.ParseError(size)
			}
			add(n, v)
			packed = packed[size:]
		}
		return nil
	})
	t.samples = append(t.samples, s)
	return err
}

func (t *tables) location(b []byte) error {
	var id uint64
	var functions []uint64
	err := fields(b, func(n protowire.Number, v uint64, line []byte) error {
		switch n {
		case locationID:
			id = v
		case locationLine:
			return fields(line, func(n protowire.Number, v uint64, _ []byte) error {
				if n == lineFunction {
					functions = append(functions, v)
				}
				return nil
			})
		}
		return nil
	})
	t.locations[id] = functions
	return err
}

func (t *tables) function(b []byte) error {
	var id, name uint64
	err := fields(b, func(n protowire.Number, v uint64, _ []byte) error {
		switch n {
		case functionID:
			id = v
		case functionName:
			name = v
		}
		return nil
	})
	t.functions[id] = name
	return err
}

// fields calls fn for every field of a message: with the number of a varint, or with the bytes
// of anything that has a length.
func fields(b []byte, fn func(n protowire.Number, v uint64, bytes []byte) error) error {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		var v uint64
		var text []byte
		switch kind {
		case protowire.VarintType:
			v, size = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			text, size = protowire.ConsumeBytes(b)
		default:
			size = protowire.ConsumeFieldValue(n, kind, b)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		if err := fn(n, v, text); err != nil {
			return err
		}
	}
	return nil
}
