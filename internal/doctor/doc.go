// Package doctor measures and judges what a server depends on outside itself: the clock, the
// disk under its database, the limits of its process.
//
// Each examination returns one [Finding] that says what was found in words an operator can act
// on. Nothing is changed but a small file beside the database, which is gone again afterwards.
// Examinations fail softly: what cannot be measured is a [Warning] with the reason.
package doctor
