package progress

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/summary"
)

// Report is the status of a package. Its JSON fields are stable.
type Report struct {
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name"`
	Summary   summary.Summary `json:"summary"`
	Message   string          `json:"message,omitempty"`

	// Remedy is a way to fix it, if the status is enough to know one.
	Remedy string `json:"remedy,omitempty"`
	// Current means that the status describes the latest spec.
	Current bool `json:"current"`
	// Available means that the package works, in this revision or the previous one.
	Available bool   `json:"available"`
	Image     string `json:"image"`

	// PackageRef is set, and Image is empty, if the package is chosen from repositories.
	PackageRef *corev1alpha1.PackageReference `json:"packageRef,omitempty"`
	// Repository that offered the last unpacked version, such as PackageRepository/stable.
	Repository string `json:"repository,omitempty"`
	Component  string `json:"component,omitempty"`

	// TargetRef is the cluster that holds the objects; absent for the package's own.
	TargetRef *corev1alpha1.TargetReference `json:"targetRef,omitempty"`
	// Package, Version and Digest are the last unpacked ones.
	Package  string                        `json:"package,omitempty"`
	Version  string                        `json:"version,omitempty"`
	Digest   string                        `json:"digest,omitempty"`
	Revision int64                         `json:"revision,omitempty"`
	Phases   []corev1alpha1.PhaseStatus    `json:"phases,omitempty"`
	Blocking []corev1alpha1.BlockingObject `json:"blocking,omitempty"`

	// Images that the package's objects name, and the number of omitted ones.
	Images        []corev1alpha1.PackageImage `json:"images,omitempty"`
	OmittedImages int32                       `json:"omittedImages,omitempty"`

	// Ignored are the parts of the package that have no effect.
	Ignored    []string           `json:"ignored,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Created    metav1.Time        `json:"created"`
}

// ReportOf creates a Report from a Snapshot that has a Package.
func ReportOf(snap Snapshot) Report {
	s := Of(snap)
	pkg := snap.Package
	status, rollout := pkg.PackageStatus(), snap.rollout()
	r := Report{
		Kind: snap.Target.Kind(), Namespace: pkg.GetNamespace(), Name: pkg.GetName(),
		Current: s.Observed, Available: s.Available,
		Image: pkg.PackageSpec().Image, PackageRef: pkg.PackageSpec().PackageRef, Component: pkg.PackageSpec().Component,
		TargetRef: pkg.PackageSpec().TargetRef,
		Revision:  rollout.revision, Phases: rollout.phases, Blocking: rollout.blocking, Ignored: s.Ignored,
		Conditions: ordered(status.Conditions), Created: pkg.GetCreationTimestamp(),
	}

	if status.Resolved != nil {
		r.Repository = status.Resolved.Repository
		r.Package, r.Version, r.Digest = status.Resolved.PackageName, status.Resolved.Version, status.Resolved.Digest
		r.Images, r.OmittedImages = status.Resolved.Images, status.Resolved.OmittedImages
	}

	r.Summary, r.Message = s.Summary(), "The status reports no problem."
	if r.Summary != summary.Available {
		c := CauseOf(s)
		r.Message, r.Remedy = c.body(), c.Remedy
	}

	return r
}

// conditionOrder sorts conditions by importance.
var conditionOrder = []string{
	corev1alpha1.ConditionReady, corev1alpha1.ConditionAvailable, corev1alpha1.ConditionProgressing,
	corev1alpha1.ConditionUnpacked, corev1alpha1.ConditionTargetConnected, corev1alpha1.ConditionPermissionsGranted, corev1alpha1.ConditionDependenciesReady, corev1alpha1.ConditionInvalid, corev1alpha1.ConditionPaused,
	corev1alpha1.ConditionReconciling, corev1alpha1.ConditionStalled,
}

// ordered sorts conditions by importance. Unknown ones follow in alphabetical order.
func ordered(conds []metav1.Condition) []metav1.Condition {
	rank := func(c metav1.Condition) uint { return uint(slices.Index(conditionOrder, c.Type)) } // the largest if it is absent
	return slices.SortedStableFunc(slices.Values(conds), func(a, b metav1.Condition) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Type, b.Type))
	})
}

// Summary returns the state in one word.
func (s State) Summary() summary.Summary { return s.facts.Summary() }
