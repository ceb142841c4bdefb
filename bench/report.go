package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"lockstep.run/lockstep/bench/measure"
)

// result has the measurements of one workload.
type result struct {
	name string
	measure.Workload
	kubernetes string
	raw        measure.RawTimes
	rows       []row
}

// row is the outcome of one scenario.
type row struct {
	scenario string
	measure.Measurement
}

func (r result) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s: %s\n", r.name, r.Workload)
	if r.Kind != measure.Offers {
		fmt.Fprintf(w, "raw, %d clients, median of %d: %d creates %.2f s, %d deletes %.2f s\n",
			r.raw.Clients, r.raw.Rounds, r.Total(), r.raw.CreateSeconds, r.Total(), r.raw.DeleteSeconds)
	}

	var rows [][]string
	for _, x := range r.rows {
		line := []string{x.scenario}
		for _, n := range []int{x.Count.Requests, x.Count.Writes, x.Count.DryRuns, x.Count.Statuses, x.Count.Events, x.Count.Reads, x.Count.Lists, x.Count.Refused} {
			line = append(line, strconv.Itoa(n))
		}
		rows = append(rows, append(line, fmt.Sprintf("%.3f", x.Span.Seconds()), r.toRaw(x), x.background(), fmt.Sprintf("%.2f", x.CPU.Seconds()),
			fmt.Sprintf("%.1f", x.Memory.RssAnon), fmt.Sprintf("%.1f", x.Memory.Most)))
	}

	printTable(w, []string{
		"scenario", "requests", "writes", "dry runs", "statuses", "events", "reads", "lists", "(refused)", "seconds", "× raw", "after it", "CPU s", "RssAnon MiB", "VmHWM MiB",
	}, rows)

	for _, x := range r.rows {
		for _, note := range x.Notes {
			fmt.Fprintf(w, "- %s: %s\n", x.scenario, note)
		}
	}
}

// toRaw is the duration of a scenario relative to the bare API server, if they are comparable.
func (r result) toRaw(x row) string {
	raw := map[string]float64{measure.Install: r.raw.CreateSeconds, measure.Delete: r.raw.DeleteSeconds}[x.scenario]
	if raw == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", x.Span.Seconds()/raw)
}

// background describes the work after the effect.
func (r row) background() string {
	if r.Background.Requests == 0 {
		return ""
	}
	return fmt.Sprintf("%d in %.2f s", r.Background.Requests, r.Background.Seconds)
}

// printBudget prints every limit with the measured value, and returns how many are exceeded.
func printBudget(w io.Writer, results []result) (exceeded int) {
	var rows [][]string
	for _, r := range results {
		for _, x := range r.rows {
			limits := measure.Budget(x.scenario, r.Workload, r.raw, x.Measurement)
			over := measure.Exceeded(limits, x.Measurement)
			exceeded += len(over)
			for _, l := range limits {
				kept := "yes"
				if slices.Contains(over, l) {
					kept = "**no**"
				}
				rows = append(rows, []string{r.name, x.scenario, l.Measure, figure(l.AtMost), figure(x.Value(l.Measure)), kept})
			}
		}
	}

	fmt.Fprintf(w, "\nBudget: %d limits, %d exceeded\n", len(rows), exceeded)
	printTable(w, []string{"workload", "scenario", "measure", "at most", "measured", "kept"}, rows)
	return exceeded
}

// figure prints counts without decimals.
func figure(value float64) string {
	if value == math.Trunc(value) {
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.3f", value)
}

// printTable prints Markdown. All columns but the first are aligned to the right.
func printTable(w io.Writer, head []string, rows [][]string) {
	width := make([]int, len(head))
	for _, line := range append([][]string{head}, rows...) {
		for i, cell := range line {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}

	ruler := make([]string, len(head))
	for i, columns := range width {
		ruler[i] = strings.Repeat("-", columns)
	}

	fmt.Fprintln(w)
	for _, line := range append([][]string{head, ruler}, rows...) {
		for i, cell := range line {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				cell, pad = cell+pad, ""
			}
			fmt.Fprintf(w, "| %s%s ", pad, cell)
		}
		fmt.Fprintln(w, "|")
	}

	fmt.Fprintln(w)
}
