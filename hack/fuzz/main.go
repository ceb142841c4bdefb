// Command fuzz runs the project's fuzz targets, each for a while, and says how
// many inputs each has tried, what it has found, and how much of the code that it
// is for its corpus reaches.
//
//	go run ./hack/fuzz -time 1m                  every target for a minute, with coverage guidance
//	go run ./hack/fuzz -time 2000x -plain        a short search, without building anything anew
//	go run ./hack/fuzz -run 'FuzzJQ|FuzzCEL'     some of them
//	go run ./hack/fuzz -list                     the targets, and the files that each is for
//	go run ./hack/fuzz -cover                    the coverage of the corpora, without a search
//	go run ./hack/fuzz -keep                     choose what to commit of what was found
//
// What a search finds new is kept in Go's cache, and a later one goes on from it.
// An input that fails is written to testdata/fuzz beside the target: commit it
// with the fix.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"text/tabwriter"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		stop()
		os.Exit(1)
	}
}

type flags struct {
	time, run, record string
	parallel          int

	plain, list, cover, keep bool
}

func run(ctx context.Context, args []string) error {
	var f flags
	set := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	set.StringVar(&f.time, "time", "30s", "how long each target runs, such as 30s, or how many inputs it tries, such as 2000x")
	set.StringVar(&f.run, "run", "", "regular expression that selects targets")
	set.StringVar(&f.record, "record", "", "file to append one line of JSON for each target to")
	set.BoolVar(&f.plain, "plain", false, "without coverage guidance, from the test binaries as they are")
	set.BoolVar(&f.list, "list", false, "list the targets and stop")
	set.BoolVar(&f.cover, "cover", false, "measure the coverage of the corpora and stop")
	set.BoolVar(&f.keep, "keep", false, "copy inputs from Go's cache that reach more code than the committed ones, and stop")
	set.IntVar(&f.parallel, "parallel", 1, "how many processes try inputs")
	if err := set.Parse(args); err != nil {
		return err
	}
	match, err := regexp.Compile(f.run)
	if err != nil {
		return err
	}
	targets, err := discover(".", match)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return fmt.Errorf("no target matches %q", f.run)
	}
	switch {
	case f.list:
		return list(targets)
	case f.cover:
		return cover(ctx, targets)
	case f.keep:
		return keep(ctx, targets)
	}
	return search(ctx, targets, f)
}

func list(targets []target) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, t := range targets {
		fmt.Fprintf(w, "%s\t%s\t%v\n", t.Package, t.Name, t.Code)
	}
	return w.Flush()
}

// search runs every target and prints a line for each; a failure does not keep
// the others from running.
func search(ctx context.Context, targets []target, f flags) error {
	var failed []error
	total := outcome{}
	b := binaries{plain: f.plain}
	defer b.remove()
	fmt.Printf("%-28s %-16s %12s %9s %8s %8s\n", "package", "target", "executions", "time", "new", "corpus")
	for _, t := range targets {
		if ctx.Err() != nil {
			break
		}
		o, err := b.search(ctx, t, f)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s %s: %w", t.Package, t.Name, err))
		}
		total.Executions += o.Executions
		total.Seconds += o.Seconds
		fmt.Printf("%-28s %-16s %12d %9s %8d %8d\n", t.Package, t.Name, o.Executions, seconds(o.Seconds), o.New, o.Corpus)
		if f.record != "" {
			failed = append(failed, record(f.record, t, o))
		}
	}
	fmt.Printf("%-28s %-16s %12d %9s\n", "total", "", total.Executions, seconds(total.Seconds))
	return errors.Join(append(failed, ctx.Err())...)
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(100 * time.Millisecond).String()
}
