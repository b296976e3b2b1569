//go:build race

package inbox

const raced = true // everything takes many times as long
