package slab

import (
	"sync"
	"sync/atomic"
	"testing"
)

// published tells readers how far they may look; the writer stores it after the items are written.
type published struct{ top atomic.Int32 }

// read calls look with indexes below the top again and again, until done is closed.
func (p *published) read(group *sync.WaitGroup, done <-chan struct{}, look func(i int32)) {
	group.Go(func() {
		for x := uint32(1); ; {
			select {
			case <-done:
				return
			default:
			}
			for range 64 {
				x = x*1664525 + 1013904223
				if top := p.top.Load(); top > 0 {
					look(int32(x>>4) % top)
				}
			}
		}
	})
}

func TestReadersMayLookWhileASlabGrows(t *testing.T) {
	for _, most := range []int{64, largestItems} {
		s := newSlab[row](new(Memory), most)
		var p published
		var group sync.WaitGroup
		done := make(chan struct{})
		for range 2 {
			p.read(&group, done, func(i int32) {
				if got := s.At(i + 1).Member; got != i+1 {
					t.Errorf("item %d holds %d", i+1, got)
				}
			})
		}
		for range 60_000 {
			i := s.Take()
			s.At(i).Member = i
			if i%3 == 0 { // an item that no reader knows of comes and goes
				s.Drop(s.Take())
			}
			p.top.Store(i)
		}
		close(done)
		group.Wait()
	}
}

func TestReadersMayLookWhileRunsAndTextsGrow(t *testing.T) {
	r, x := newRuns[row](new(Memory), 2, 256), NewText(new(Memory))
	const n = 2000
	var at [n]int32
	var refs [n]Ref
	var p published
	var group sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		p.read(&group, done, func(i int32) {
			for _, v := range r.View(at[i], int(1+i%50)) {
				if v.Member != i {
					t.Errorf("range %d holds %d", i, v.Member)
				}
			}
			if !x.Equal(refs[i], text(i)) || x.String(refs[i]) != text(i) {
				t.Errorf("text %d is %q", i, x.String(refs[i]))
			}
		})
	}
	for i := range int32(n) {
		at[i], _ = r.Take(int(1 + i%50))
		view := r.View(at[i], int(1+i%50))
		for k := range view {
			view[k].Member = i
		}
		refs[i] = x.Put(text(i))
		r.Drop(r.Take(int(1 + i*7%100)))
		x.Drop(x.Put("gone at once"))
		p.top.Store(i + 1)
	}
	close(done)
	group.Wait()
}

func text(i int32) string { return "text of some length"[:i%20] }

func TestOneMemoryServesManySlabs(t *testing.T) {
	var m Memory
	var group sync.WaitGroup
	slabs := make([]*Slab[row], 8)
	for k := range slabs {
		group.Go(func() {
			slabs[k] = NewSlab[row](&m)
			for range 5000 {
				slabs[k].Take()
				m.Bytes()
			}
		})
	}
	group.Wait()
	sum := int64(0)
	for _, s := range slabs {
		sum += s.Bytes()
	}
	if m.Bytes() != sum {
		t.Fatalf("%d bytes, %d in sum", m.Bytes(), sum)
	}
}
