package trace_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-im/tidemark/internal/trace"
)

const header = "unix_seconds,channel,topic,sender,mentions,length\n"

func readAll(t *testing.T, r io.Reader) ([]trace.Row, error) {
	t.Helper()
	in, err := trace.NewReader(r)
	if err != nil {
		return nil, err
	}
	var rows []trace.Row
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
}

func generated(t *testing.T, s trace.Settings) []trace.Row {
	t.Helper()
	var rows []trace.Row
	if err := trace.Generate(s, func(r trace.Row) error { rows = append(rows, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return rows
}

func written(t *testing.T, rows []trace.Row) []byte {
	t.Helper()
	var out bytes.Buffer
	w := trace.NewWriter(&out)
	for _, row := range rows {
		if err := w.Write(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestReadsWhatItWrites(t *testing.T) {
	rows := append(generated(t, trace.Settings{Messages: 3000, Seed: 5}),
		trace.Row{At: 1, Channel: 1<<32 - 1, Topic: 1<<32 - 1, Sender: 1<<32 - 1, Length: 1<<31 - 1},
		trace.Row{Channel: 1<<32 - 1, Topic: 1<<32 - 2, Mentions: []trace.User{2, 1}, Everyone: true})
	plain := written(t, rows)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(plain)
	z.Close()
	for name, in := range map[string]io.Reader{
		"plain":      bytes.NewReader(plain),
		"compressed": &packed,
		"by bytes":   iotest.OneByteReader(bytes.NewReader(plain)),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readAll(t, in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(rows, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadsWindowsLines(t *testing.T) {
	rows, err := readAll(t, strings.NewReader(strings.ReplaceAll(header+"7,0,0,0,,1\n", "\n", "\r\n")))
	if err != nil || len(rows) != 1 || rows[0].At != 7 {
		t.Errorf("got %v, %v", rows, err)
	}
}

func TestRefusesWhatIsNoTrace(t *testing.T) {
	many := "0"
	for id := 1; id <= trace.MaxMentions; id++ {
		many += fmt.Sprintf(" %d", id)
	}
	for name, c := range map[string]struct{ text, want string }{
		"nothing":             {"", "it is empty"},
		"no header":           {"1,0,0,0,,1\n", "line 1: not a chat trace: the header"},
		"few fields":          {header + "1,0,0,0,1\n", "line 2: not a chat trace: 5 fields"},
		"many fields":         {header + "1,0,0,0,,1,\n", "7 fields"},
		"blank line":          {header + "\n", "1 fields"},
		"time":                {header + "x,0,0,0,,1\n", `unix_seconds is "x"`},
		"time before 1970":    {header + "-1,0,0,0,,1\n", "unix_seconds"},
		"channel":             {header + "1,-1,0,0,,1\n", "channel is"},
		"topic":               {header + "1,0,,0,,1\n", "topic is"},
		"sender beyond range": {header + "1,0,0,4294967296,,1\n", "sender is"},
		"padded number":       {header + "1,0,0,01,,1\n", "sender is"},
		"mention":             {header + "1,0,0,0,a,1\n", "mentions are"},
		"mentioned twice":     {header + "1,0,0,0,3 3,1\n", "mentions are"},
		"everyone twice":      {header + "1,0,0,0,* *,1\n", "mentions are"},
		"mention spaces":      {header + "1,0,0,0,3  4,1\n", "mentions are"},
		"too many mentions":   {header + "1,0,0,0," + many + ",1\n", "more than 1000 mentions"},
		"length":              {header + "1,0,0,0,,-1\n", "length is"},
		"topic moves":         {header + "1,0,0,0,,1\n1,1,0,0,,1\n", "line 3: not a chat trace: topic 0 is in channel 0"},
		"long line":           {header + strings.Repeat("1", 100_000), "line 2: not a chat trace: the line is too long"},
		"compressed garbage":  {"\x1f\x8bgarbage", "not a chat trace"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readAll(t, strings.NewReader(c.text))
			if !errors.Is(err, trace.ErrFormat) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestSaysThatAFileIsCutOff(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(written(t, generated(t, trace.Settings{Messages: 500, Seed: 1})))
	z.Close()
	_, err := readAll(t, bytes.NewReader(packed.Bytes()[:packed.Len()/2]))
	if !errors.Is(err, trace.ErrFormat) || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("cut: %v", err)
	}
	broken := slices.Clone(packed.Bytes())
	broken[len(broken)-6] ^= 1 // of the checksum
	if _, err = readAll(t, bytes.NewReader(broken)); !errors.Is(err, trace.ErrFormat) {
		t.Errorf("checksum: %v", err)
	}
}

func TestErrorsOfTheReaderComeThrough(t *testing.T) {
	_, err := readAll(t, io.MultiReader(strings.NewReader(header), iotest.ErrReader(io.ErrClosedPipe)))
	if !errors.Is(err, io.ErrClosedPipe) || errors.Is(err, trace.ErrFormat) {
		t.Errorf("got %v", err)
	}
}

func TestErrorsOfTheWriterComeThrough(t *testing.T) {
	r, w := io.Pipe()
	r.CloseWithError(io.ErrNoProgress)
	out := trace.NewWriter(w)
	err := errors.Join(out.Write(trace.Row{}), out.Flush())
	if !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("got %v", err)
	}
}

func TestGenerateIsAFunctionOfItsSettings(t *testing.T) {
	a := written(t, generated(t, trace.Settings{Messages: 4000, Seed: 9}))
	b := written(t, generated(t, trace.Settings{Messages: 4000, Seed: 9}))
	if !bytes.Equal(a, b) {
		t.Error("the same settings gave two traces")
	}
	if c := written(t, generated(t, trace.Settings{Messages: 4000, Seed: 10})); bytes.Equal(a, c) {
		t.Error("the seed changes nothing")
	}
	for _, n := range []int{0, -1, trace.MaxMessages + 1} {
		if trace.Generate(trace.Settings{Messages: n}, nil) == nil {
			t.Errorf("%d messages were accepted", n)
		}
	}
	stop := errors.New("stop")
	err := trace.Generate(trace.Settings{Messages: 2}, func(trace.Row) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

// A generated chat has everything that a replay has to get right, and looks like a grown one.
func TestGeneratedChatHasEverything(t *testing.T) {
	rows := generated(t, trace.Settings{Messages: 20_000, Seed: 1})
	topics, senders, channels := map[trace.Topic]int{}, map[trace.User]int{}, map[trace.Channel]int{}
	var named, self, everyone, roots, together int
	last := int64(0)
	for _, row := range rows {
		topics[row.Topic]++
		senders[row.Sender]++
		channels[row.Channel]++
		if len(row.Mentions) > 0 {
			named++
			if topics[row.Topic] == 1 {
				roots++
			}
		}
		if len(row.Mentions) > 1 {
			together++
		}
		if slices.Contains(row.Mentions, row.Sender) {
			self++
		}
		if row.Everyone {
			everyone++
		}
		if row.At < last {
			t.Fatal("time goes back")
		}
		last = row.At
	}
	single := 0
	for _, n := range topics {
		if n == 1 {
			single++
		}
	}
	t.Logf("topics %d (%d single) senders %d channels %d named %d (roots %d, several %d, self %d) everyone %d",
		len(topics), single, len(senders), len(channels), named, roots, together, self, everyone)
	for what, ok := range map[string]bool{
		"threads":             len(topics)-single > 300,
		"topics of one":       single > 50,
		"people":              len(senders) > 200,
		"channels":            len(channels) > 15,
		"a big channel":       channels[0] > len(rows)/5,
		"mentions":            named > len(rows)/20 && named < len(rows)/5,
		"several mentions":    together > 50,
		"mentions by a root":  roots > 20,
		"mentions of oneself": self > 20,
		"everyone":            everyone > 3 && everyone < 50,
	} {
		if !ok {
			t.Errorf("the chat has no %s", what)
		}
	}
}
