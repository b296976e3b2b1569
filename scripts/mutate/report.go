package main

import "fmt"

func word(a alteration, r result) string {
	switch {
	case r.verdict == broken:
		return "BROKEN"
	case r.verdict == survived && a.unseen != "":
		return "unseen"
	case r.verdict == survived:
		return "SURVIVED"
	case a.unseen != "":
		return "SEEN"
	}
	return "caught"
}

// report prints what needs attention and tells whether nothing does.
func report(chosen []alteration, results []result) bool {
	count := map[string]int{}
	for i, a := range chosen {
		w := word(a, results[i])
		count[w]++
		switch w {
		case "unseen":
			fmt.Printf("\nunseen, as expected: %s\n    %s\n", a, a.unseen)
		case "SEEN":
			fmt.Printf("\nsaid to be unseen, but caught: %s\n%s\n", a, results[i].detail)
		case "SURVIVED", "BROKEN":
			fmt.Printf("\n%s: %s\n%s\n", w, a, results[i].detail)
		}
	}
	fmt.Printf("\n%d alterations: %d caught, %d unseen for the reason given, %d survived, "+
		"%d wrongly said to be unseen, %d broken\n", len(chosen), count["caught"], count["unseen"],
		count["SURVIVED"], count["SEEN"], count["BROKEN"])
	return count["SURVIVED"]+count["SEEN"]+count["BROKEN"] == 0
}
