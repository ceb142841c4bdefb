package desired

import (
	"cmp"
	"context"
	"strings"

	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/kube/summary"
)

// Outdated is a package that follows repositories, and the versions available for it. Its JSON
// fields are stable.
type Outdated struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Package   string `json:"package"`
	// Constraint of spec.packageRef.version.
	Constraint string `json:"constraint,omitempty"`
	Installed  string `json:"installed,omitempty"`

	// Wanted is the version that the constraint leads to. Newest is the highest release of all.
	Wanted string `json:"wanted,omitempty"`
	Newest string `json:"newest,omitempty"`

	// Why it is not updated, or not further.
	Why string `json:"why,omitempty"`
}

// OutdatedOf compares packages with the offers, and returns the packages that are not at their
// newest version. byImage is the number of packages that follow no repository.
func OutdatedOf(ctx context.Context, cl *cluster.Cluster, packages []corev1alpha1.GenericPackage) (rows []Outdated, byImage int, err error) {
	rows = []Outdated{}
	type at struct {
		namespace string
		target    corev1alpha1.TargetReference
	}
	// One chooser serves all packages of a namespace and target, so that it reads an offer once.
	choosers := map[at]*Chooser{}
	for _, pkg := range packages {
		if pkg.PackageSpec().PackageRef == nil {
			byImage++
			continue
		}
		target := pkg.PackageSpec().TargetRef
		key := at{pkg.GetNamespace(), ptr.Deref(target, corev1alpha1.TargetReference{})}
		if choosers[key] == nil {
			choosers[key] = ChooserFor(cl, pkg.GetNamespace()).At(target)
		}

		row, err := outdated(ctx, choosers[key], pkg)
		if err != nil {
			return nil, 0, err
		}
		if row.Why != "" || row.Installed != row.Wanted {
			rows = append(rows, row)
		}
	}

	return rows, byImage, nil
}

// outdated compares the installed version with the offers.
func outdated(ctx context.Context, choose *Chooser, pkg corev1alpha1.GenericPackage) (Outdated, error) {
	ref := pkg.PackageSpec().PackageRef
	row := Outdated{Namespace: pkg.GetNamespace(), Name: pkg.GetName(), Package: progress.SubjectOf(pkg), Constraint: ref.Version}
	name, err := NameFor(pkg, ref)
	if err != nil {
		row.Why = err.Error()
		return row, nil
	}

	row.Package = name
	request := choose.RequestFor(ctx, pkg, ref, name)
	if request.Installed != "" {
		row.Installed = pkg.PackageStatus().InstalledVersion()
	}
	found, err := choose.Choose(ctx, name, request)
	if err != nil {
		return row, err
	}

	_, newest, err := choose.Newest(ctx, name)
	if err != nil {
		return row, err
	}
	// The newest version can be above the wanted one, if the constraint or a platform excludes it.
	if newest != nil {
		row.Newest = newest.Version.Version
	}

	if len(found.Offered) == 0 {
		row.Why = "no repository offers it any longer"
		return row, nil
	}
	if v := found.Version(); v != nil {
		row.Wanted = v.Version.Version
	}

	row.Why = whyNot(found, pkg, row)
	return row, nil
}

// whyNot returns the reason why a package is not at the newest version; empty if it is.
func whyNot(found *Chosen, pkg corev1alpha1.GenericPackage, row Outdated) string {
	switch {
	case row.Wanted == "":
		return cmp.Or(found.Message, "no version fits")
	case row.Wanted != row.Installed && pkg.PackageSpec().Paused:
		return "it is paused"
	case row.Wanted != row.Installed:
		s := progress.Of(progress.Snapshot{Target: progress.TargetOf(pkg), Package: pkg})
		if passed := s.PassedOver(row.Wanted); passed != "" {
			return passed
		}
		// The newer version was chosen, so the state of the rollout is the reason.
		switch s.Summary() {
		case summary.Available:
		case summary.Unsatisfied, summary.Waiting:
			first, _, _ := strings.Cut(s.Waiting, "\n")
			return s.Summary().Words() + ": " + first
		default:
			return s.Summary().Words()
		}

		return "it has not been updated yet"
	case CompareVersions(row.Newest, row.Wanted) > 0:
		return row.Newest + ": " + cmp.Or(found.Why()[row.Newest], "is not allowed by the constraint")
	}

	return ""
}
