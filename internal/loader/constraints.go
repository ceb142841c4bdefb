package loader

import (
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Other is another installation of the same package.
type Other = manifest.Other

// notUnique returns the constraints that other installations violate.
func (l *load) notUnique() violation.Violations {
	r := l.unit.result
	if !r.Unique() {
		return nil
	}
	if l.opts.Others == nil {
		return violation.Violations{r.At(violation.ReasonUnsupported, "spec.constraints").
			Because("", "uniqueInScope cannot be checked, because the other packages are not known here")}
	}
	meta := &l.opts.Package.Metadata
	return r.NotUnique(Other{Namespace: meta.Namespace, Name: meta.Name}, l.opts.Others(l.unit.name))
}
