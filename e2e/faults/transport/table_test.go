package transport_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// violation is something that was broken in a stage of a package, with the faults
// that it had met in it: which of them is to blame is for people to find out.
type violation struct {
	stage string
	met   []fault
}

// tally is what came of the faults of one sort.
type tally struct{ met, writes, violations int }

func (c tally) plus(o tally) tally {
	return tally{c.met + o.met, c.writes + o.writes, c.violations + o.violations}
}

func (c tally) String() string {
	if c == (tally{}) {
		return "-"
	}
	return fmt.Sprintf("%d/%d/%d", c.met, c.writes, c.violations)
}

// table counts by stage and by a property of the faults. A violation counts for
// each of the faults that may be to blame, and once in the sums.
func (s *suite) table(columns []string, of func(fault) string) string {
	rows := map[string]map[string]tally{}
	add := func(row, column string, c tally) {
		if rows[row] == nil {
			rows[row] = map[string]tally{}
		}
		rows[row][column] = rows[row][column].plus(c)
	}
	total := map[string]tally{}
	for _, f := range s.hits {
		one := tally{met: 1}
		if f.writes() {
			one.writes = 1
		}
		add(of(f), f.stage, one)
		total[f.stage] = total[f.stage].plus(one)
	}
	for _, v := range s.violations {
		one := tally{violations: 1}
		for _, row := range v.suspects(of) {
			add(row, v.stage, one)
		}
		total[v.stage] = total[v.stage].plus(one)
	}
	return draw(columns, rows, total)
}

// suspects returns a property of each fault that may be to blame.
func (v violation) suspects(of func(fault) string) []string {
	var all []string
	for _, f := range v.met {
		all = append(all, of(f))
	}
	slices.Sort(all)
	if len(all) == 0 {
		return []string{"without a fault of its own"}
	}
	return slices.Compact(all)
}

// draw writes rows with their sums, and a last one of all.
func draw(columns []string, rows map[string]map[string]tally, total map[string]tally) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %-46s", "")
	for _, column := range append(slices.Clone(columns), "all") {
		fmt.Fprintf(&b, "%14s", column)
	}
	b.WriteByte('\n')
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		line(&b, row, columns, rows[row])
	}
	line(&b, "all", columns, total)
	return b.String()
}

// line writes a row of a table, with its sum.
func line(b *strings.Builder, name string, columns []string, cells map[string]tally) {
	var sum tally
	fmt.Fprintf(b, "  %-46s", name)
	for _, column := range columns {
		fmt.Fprintf(b, "%14s", cells[column])
		sum = sum.plus(cells[column])
	}
	fmt.Fprintf(b, "%14s\n", sum)
}
