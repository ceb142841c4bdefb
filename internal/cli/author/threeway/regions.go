package threeway

import (
	"cmp"
	"slices"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// span is a range of one side.
type span struct{ from, to int }

func cut[T any](list []T, s span) []T { return list[s.from:s.to] }

// region is a part of the base with its counterparts.
type region struct {
	base, ours, theirs        span
	oursChanged, theirChanged bool
}

// change is a difference of one side from the base.
type change struct {
	lcs.Diff
	theirs bool
}

// touches reports whether a change overlaps a region before it; adjacent ones do not.
func (c change) touches(in span) bool {
	return c.Start < in.to || in.from == in.to && c.Start == c.End && c.Start == in.from
}

// regions cuts three sequences into parts that no side, one or both changed.
func regions(base, ours, theirs []string) (out []region) {
	var changes []change
	for _, d := range lcs.DiffLines(base, ours) {
		changes = append(changes, change{d, false})
	}
	for _, d := range lcs.DiffLines(base, theirs) {
		changes = append(changes, change{d, true})
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Or(a.Start-b.Start, a.End-b.End) })
	at, o, t := 0, 0, 0 // o and t shift positions in the base to those of a side
	unchanged := func(to int) {
		if to > at {
			out = append(out, region{base: span{at, to}, ours: span{at + o, to + o}, theirs: span{at + t, to + t}})
		}
		at = to
	}
	for len(changes) > 0 {
		in := span{changes[0].Start, changes[0].End}
		unchanged(in.from)
		r := region{ours: span{from: in.from + o}, theirs: span{from: in.from + t}}
		for first := true; len(changes) > 0 && (first || changes[0].touches(in)); first = false {
			c := changes[0]
			changes = changes[1:]
			in.to = max(in.to, c.End)
			if c.theirs {
				t, r.theirChanged = c.ReplEnd-c.End, true
			} else {
				o, r.oursChanged = c.ReplEnd-c.End, true
			}
		}
		r.base, r.ours.to, r.theirs.to, at = in, in.to+o, in.to+t, in.to
		out = append(out, r)
	}
	unchanged(len(base))
	return out
}

// mergeLists merges lists by the texts of their items. resolve merges a region that theirs
// changed.
func mergeLists[T any](base, ours, theirs []T, text func(T) string, resolve func(r region, was, mine, other []T) []T) (out []T) {
	for _, r := range regions(texts(base, text), texts(ours, text), texts(theirs, text)) {
		mine, other := cut(ours, r.ours), cut(theirs, r.theirs)
		if r.theirChanged && !slices.Equal(texts(mine, text), texts(other, text)) {
			mine = resolve(r, cut(base, r.base), mine, other)
		}
		out = append(out, mine...)
	}
	return out
}

func texts[T any](list []T, text func(T) string) []string {
	out := make([]string, len(list))
	for i, item := range list {
		out[i] = text(item)
	}
	return out
}
