// Command mutate shows that the tests see every rule: it alters one line of the code at a time
// and expects the tests to fail.
//
//	go run ./scripts/mutate [-only REGEXP] [-jobs N] [-list]
//
// Nothing in the tree is written: the packages are copied to a temporary directory first, and an
// altered file reaches the compiler as an overlay. An alteration that no test notices survives;
// it is printed, and the program exits 1 unless its list says why nobody could notice it.
//
// There is a list for each package, alterations/PACKAGE.txt; suites.go says which tests judge it.
// Whoever adds a rule to such a package adds the alterations that break it. A list is written so:
//
//	# a remark
//
//	@ file, as seen from the root of the repository: the rule that the alteration breaks
//	- text that occurs once in the file, as many lines as it takes
//	+ what stands there instead; left out, the text is deleted
//	= why no test can notice, for an alteration that changes nothing observable
//
// A blank line ends an alteration. What follows the mark and one blank is taken as it is.
package main
