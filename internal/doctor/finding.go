package doctor

// Verdict says whether something has to be done.
type Verdict uint8

const (
	Good    Verdict = iota
	Warning         // works, and will hurt one day
	Failure         // does not work
)

var verdictNames = [...]string{Good: "ok", Warning: "warn", Failure: "FAIL"}

// String returns the word that is printed.
func (v Verdict) String() string { return verdictNames[v] }

// Finding is the outcome of one examination.
type Finding struct {
	Verdict Verdict
	What    string // one word
	Text    string // one line
}

// Worst returns the worst verdict of some findings.
func Worst(all []Finding) Verdict {
	worst := Good
	for _, f := range all {
		worst = max(worst, f.Verdict)
	}
	return worst
}
