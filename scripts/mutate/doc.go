// Command mutate shows that the tests of package readstate see every rule: it alters one line of
// the algebra at a time and expects the tests to fail.
//
//	go run ./scripts/mutate [-only REGEXP] [-jobs N] [-list]
//
// Nothing in the tree is written: the package and its oracle are copied to a temporary directory
// first, and an altered file reaches the compiler as an overlay. An alteration that no test
// notices survives; it is printed, and the program exits 1 unless the list says why nobody could
// notice it. The list is alterations.txt; whoever adds a rule to readstate adds the alterations
// that break it.
package main
