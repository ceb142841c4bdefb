package diagnose

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
)

const (
	// dependencyDepth is the maximum length of a followed chain of dependencies.
	dependencyDepth = 20
	// dependenciesExamined is the maximum number of packages that are read in total.
	dependenciesExamined = 50
)

// Reader reads a package with its newest revision. The package of the snapshot is nil if it does
// not exist or if the user may not read it.
type Reader func(context.Context, progress.Target) (progress.Snapshot, corev1alpha1.GenericObjectDeployment, error)

// dependencies follows packages to the packages that they wait for.
type dependencies struct {
	client  client.Client
	read    Reader
	connect func(corev1alpha1.GenericPackage) (client.Client, error)
	// seen are the packages that were explained, or that lead to the current one; depth counts the
	// latter.
	seen  map[progress.Target]bool
	depth int
}

// follow explains the first dependency that cannot be satisfied, or else the first that is not
// available.
func (f *dependencies) follow(ctx context.Context, snap progress.Snapshot, s progress.State, d *Diagnosis) error {
	f.seen[snap.Target] = true
	d.Reason, d.Cause = ReasonDependency, strings.Join(strings.Fields(s.Waiting), " ")
	d.Chain = []Link{{Object: name(d.Kind, d.Namespace, d.Name), State: string(d.Summary)}}

	found := false
	// A dependency that cannot be satisfied is explained first, because waiting does not help it.
	for _, failing := range []bool{true, false} {
		for _, entry := range snap.Package.PackageStatus().Dependencies {
			c := meta.FindStatusCondition(entry.Conditions, corev1alpha1.ConditionSatisfied)
			if entry.Optional || c == nil || c.Status == "True" || comes(c.Reason) == failing {
				continue
			}
			one, err := f.one(ctx, snap.Target, entry, c.Reason, c.Message)
			if err != nil {
				return err
			}
			// The first one explains the package. Others are only added to the chain.
			if !found {
				found, d.Object, d.Reason, d.Cause, d.Remedy, d.elsewhere = true, one.Object, one.Reason, one.Cause, one.Remedy, one.elsewhere
			}
			d.Chain = append(d.Chain, one.Chain...)
		}
	}

	if !found {
		d.Cause, d.Remedy = progress.LastSentence(d.Cause)
	}
	return nil
}

// comes reports whether a dependency is installed, and only has to become available.
func comes(reason string) bool { return reason == corev1alpha1.ReasonNotAvailable }

// one explains an unsatisfied dependency. Its chain starts at depth 1.
func (f *dependencies) one(ctx context.Context, t progress.Target, entry corev1alpha1.DependencyStatus, reason, message string) (*Diagnosis, error) {
	d := &Diagnosis{Reason: ReasonDependency, Object: "dependency " + entry.Name}
	d.Cause, d.Remedy = progress.LastSentence(strings.Join(strings.Fields(message), " "))
	if d.Cause = entry.Name + ": " + d.Cause; d.Remedy == "" {
		d.Remedy = remedyOf(reason, t, entry)
	}
	d.Chain = []Link{{Depth: 1, Object: d.Object, State: reason, Message: message}}
	if entry.PackageRef == nil || !comes(reason) {
		return d, nil
	}

	to := progress.TargetFor(entry.PackageRef.Namespace, entry.PackageRef.Name)
	// Dependencies can form a cycle, for example by packages that a user installs.
	if f.seen[to] || f.depth >= dependencyDepth || len(f.seen) >= dependenciesExamined {
		d.Remedy = "See: kubectl package explain " + to.Flags()
		return d, nil
	}

	f.seen[to] = true
	snap, deployment, err := f.read(ctx, to)
	if err != nil || snap.Package == nil {
		return d, err
	}

	f.depth++
	defer func() { f.depth-- }()

	below, err := f.explain(ctx, snap, deployment)
	if err != nil {
		return nil, err
	}

	for _, link := range below.Chain {
		link.Depth += 2
		d.Chain = append(d.Chain, link)
	}

	if below.Reason == ReasonNone {
		d.Cause, d.Remedy = fmt.Sprintf("%s: %s is available, but the manager has not noticed it yet", entry.Name, to), "Wait a moment, and check again."
		return d, nil
	}
	d.Object, d.Reason, d.Cause, d.Remedy, d.elsewhere = below.Object, below.Reason, below.Cause, below.Remedy, true
	if !below.elsewhere {
		d.Cause = fmt.Sprintf("%s: %s", to, below.Cause)
	}
	if below.Object == "" {
		// A package without an object has the cause itself.
		d.Object = to.String()
	}
	return d, nil
}

// remedyOf is the remedy for a dependency of a package t.
func remedyOf(reason string, t progress.Target, entry corev1alpha1.DependencyStatus) string {
	of, flag, override := "PACKAGE", progress.ScopeFlag(t.Namespace), ""
	if entry.Package != nil {
		of = entry.Package.Name
	}

	switch reason {
	case corev1alpha1.ReasonUnknownPackage:
		return "Add a repository that offers it: kubectl package repo add NAME IMAGE" + flag
	case corev1alpha1.ReasonNoMatchingVersion, corev1alpha1.ReasonVersionMismatch:
		override = `{"package":{"version":"VERSION"}}`
	case corev1alpha1.ReasonAmbiguousProvider:
		override = `{"package":{"name":"NAME"}}`
	case corev1alpha1.ReasonManagedByUser:
		return "Install it: kubectl package install " + of + flag
	case corev1alpha1.ReasonNotAvailable:
		if entry.PackageRef != nil {
			to := progress.TargetFor(entry.PackageRef.Namespace, entry.PackageRef.Name)
			return "See: kubectl package explain " + to.Flags()
		}
	}

	if override == "" {
		return "See: kubectl package deps " + t.Flags()
	}
	return fmt.Sprintf("See: kubectl package available %s%s; to choose another one, run kubectl package upgrade %s --override '%s=%s'",
		of, flag, t.Flags(), entry.Name, override)
}
