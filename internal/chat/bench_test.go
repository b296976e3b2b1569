package chat

import "testing"

func BenchmarkDraw(b *testing.B) {
	m := inGeneral(0, said(1, 5000)...)
	w := m.world
	for b.Loop() {
		m.Show(w)
		m.Draw()
	}
}
