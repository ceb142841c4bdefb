package loader

import (
	"context"
	"maps"
	"runtime"

	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/violation"
)

// read reads all object files in parallel, and returns the objects in the order of their paths. It
// panics if reading a file does.
func (r *reader) read(ctx context.Context, files Files) found {
	var paths []string
	for _, p := range files.Paths() {
		if isObjectFile(p) {
			paths = append(paths, p)
		}
	}

	perFile := make([]found, len(paths))
	group, _ := panics.NewGroup(ctx, runtime.GOMAXPROCS(0), "reading files")
	for i, p := range paths {
		group.Go(func() error {
			// Limits within a file do not depend on other files, so that the result is
			// deterministic.
			if ctx.Err() == nil && !r.full() && r.wrong.Load() <= limits.Violations {
				r.readFile(ctx, p, files[p], &perFile[i])
			}
			return nil
		})
	}

	// The functions return no errors. Panics are kept in the results, so that the first file's is
	// raised.
	_ = group.Wait()
	all := found{left: map[string][]document.Span{}}
	for _, f := range perFile {
		if f.defect != nil {
			panic(f.defect)
		}
		maps.Copy(all.left, f.left)
		all.objects = append(all.objects, f.objects...)
		all.problems = append(all.problems, f.problems...)
		all.warnings = append(all.warnings, f.warnings...)
	}

	if r.count.Load() > limits.PackageObjects {
		all.objects = nil
		all.problems = append(all.problems, violation.Violation{Reason: violation.ReasonLimit}.Because("Split the package.", "the package has more than %d objects", limits.PackageObjects))
	}

	// Reading stopped at the limit, so the sum is not the size of the whole package.
	if most := r.opts.bytes(); r.bytes.Load() > most {
		remedy := "Split the package."
		if most < limits.PackageBytes {
			remedy = "Split the package, or raise GOMEMLIMIT and the memory limit of the manager."
		}
		all.problems = append(all.problems, violation.Violation{Reason: violation.ReasonLimit}.Because(remedy, "the objects have more than %d bytes of JSON", most))
	}

	return all
}

// readFile runs the checks on each document of a file, and puts the results into found. A panic
// becomes a defect with the path of the file.
func (r *reader) readFile(ctx context.Context, p string, data []byte, into *found) {
	defer func() {
		if cause := recover(); cause != nil {
			into.defect = panics.Of(cause, "reading "+p)
		}
	}()

	// Packages for Package Operator get its cuts between documents, so that their objects do not
	// change.
	each := document.EachTrimmed
	if r.strict {
		each = document.EachWithDoubts
	}

	problems := each(p, data, func(d *document.Document) {
		if ctx.Err() != nil || r.full() || len(into.problems) > limits.Violations {
			return
		}
		for _, v := range d.Doubts {
			if v = r.sourceOf(v); r.strict {
				into.problems = append(into.problems, v)
			} else {
				into.warnings = append(into.warnings, v)
			}
		}
		for _, v := range d.Warnings {
			into.warnings = append(into.warnings, r.sourceOf(v))
		}
		c := &check{r: r, doc: d}
		if o := c.run(); o != nil {
			r.bytes.Add(int64(len(o.stored.Object.Raw)))
			r.count.Add(1)
			into.objects = append(into.objects, o)
		}
		if c.left && into.left == nil {
			into.left = map[string][]document.Span{}
		}
		if c.left {
			into.left[p] = append(into.left[p], d.Span)
		}
		r.wrong.Add(int64(len(c.problems)))
		into.problems = append(into.problems, c.problems...)
		into.warnings = append(into.warnings, c.warnings...)
	})

	r.wrong.Add(int64(len(problems)))
	for _, v := range problems {
		into.problems = append(into.problems, r.sourceOf(v))
	}
}
