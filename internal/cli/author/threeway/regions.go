package threeway

import (
	"github.com/aymanbagabas/go-udiff/lcs"
)

// span is a range of one side.
type span struct{ from, to int }

// region is a part of the base with its counterparts.
type region struct {
	base, ours, theirs        span
	oursChanged, theirChanged bool
}

// side has the remaining differences of one side from the base.
type side struct {
	diffs []lcs.Diff
	// shift from positions in the base to those of the side.
	shift int
}

// touches reports whether the next difference overlaps a region; adjacent ones do not.
func (s *side) touches(in span) bool {
	if len(s.diffs) == 0 {
		return false
	}
	d := s.diffs[0]
	insertions := in.from == in.to && d.Start == d.End && d.Start == in.from
	return insertions || d.Start < in.to && in.from < d.End
}

// take moves the next difference into a region.
func (s *side) take(in *span) {
	d := s.diffs[0]
	in.from, in.to = min(in.from, d.Start), max(in.to, d.End)
	s.shift = d.ReplEnd - d.End
	s.diffs = s.diffs[1:]
}

// regions cuts three sequences into parts that no side, one or both changed.
func regions(base, ours, theirs []string) []region {
	o, t := &side{diffs: lcs.DiffLines(base, ours)}, &side{diffs: lcs.DiffLines(base, theirs)}
	var out []region
	at := 0
	stable := func(to int) {
		if to > at {
			out = append(out, region{base: span{at, to}, ours: span{at + o.shift, to + o.shift}, theirs: span{at + t.shift, to + t.shift}})
		}
		at = to
	}
	for len(o.diffs) > 0 || len(t.diffs) > 0 {
		first := o
		if len(o.diffs) == 0 || len(t.diffs) > 0 && before(t.diffs[0], o.diffs[0]) {
			first = t
		}
		in := span{first.diffs[0].Start, first.diffs[0].End}
		stable(in.from)
		r := region{ours: span{from: in.from + o.shift}, theirs: span{from: in.from + t.shift}}
		for next := first; next != nil; {
			r.oursChanged, r.theirChanged = r.oursChanged || next == o, r.theirChanged || next == t
			next.take(&in)
			switch {
			case o.touches(in):
				next = o
			case t.touches(in):
				next = t
			default:
				next = nil
			}
		}
		r.base, r.ours.to, r.theirs.to, at = in, in.to+o.shift, in.to+t.shift, in.to
		out = append(out, r)
	}
	stable(len(base))
	return out
}

func before(a, b lcs.Diff) bool { return a.Start < b.Start || a.Start == b.Start && a.End < b.End }
