package packages

import (
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// edits remember whether the template of a deployment is the one that was made for
// its Package, so that it is looked at once for each change. The zero value is
// ready for use.
type edits struct {
	mu     sync.Mutex
	judged map[types.UID]judgement
}

// judgement is whether a template was edited, as of a generation and a record.
type judgement struct {
	generation int64
	recorded   string
	edited     bool
}

// of reports whether another client changed the template of a deployment, or whether
// it was never written to its end.
func (e *edits) of(dep corev1alpha1.GenericObjectDeployment) (bool, error) {
	if dep == nil {
		return false, nil
	}
	recorded := dep.GetAnnotations()[corev1alpha1.TemplateDigestAnnotation]
	e.mu.Lock()
	known, ok := e.judged[dep.GetUID()]
	e.mu.Unlock()
	if ok && known.generation == dep.GetGeneration() && known.recorded == recorded {
		return known.edited, nil
	}
	edited, err := edited(dep)
	if err != nil {
		return false, err
	}
	e.judge(dep, edited)
	return edited, nil
}

// wrote notes the answer to a write of a whole template: whatever the API server
// made of it, writing it again would change nothing.
func (e *edits) wrote(dep corev1alpha1.GenericObjectDeployment) { e.judge(dep, false) }

func (e *edits) judge(dep corev1alpha1.GenericObjectDeployment, edited bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.judged == nil {
		e.judged = map[types.UID]judgement{}
	}
	e.judged[dep.GetUID()] = judgement{dep.GetGeneration(), dep.GetAnnotations()[corev1alpha1.TemplateDigestAnnotation], edited}
}

func (e *edits) forget(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.judged, uid)
}

// edited compares a template with what was recorded of it. Nothing is, by an
// earlier engine.
func edited(dep corev1alpha1.GenericObjectDeployment) (bool, error) {
	recorded := dep.GetAnnotations()[corev1alpha1.TemplateDigestAnnotation]
	if recorded == "" {
		return false, nil
	}
	digest, err := templateDigest(&dep.ObjectDeploymentSpec().Template.Spec)
	return digest != recorded, err
}

// templateDigest names what a template means, before it was stored and after.
func templateDigest(spec *corev1alpha1.ObjectSetTemplateSpec) (string, error) {
	encoded, err := json.Marshal(spec)
	if err != nil {
		return "", err
	}
	stored := &corev1alpha1.ObjectSetTemplateSpec{}
	if err := json.Unmarshal(encoded, stored); err != nil {
		return "", err
	}
	if stored, err = normal(stored); err != nil {
		return "", err
	}
	return hash(stored)
}

// mends reports whether the package is to be rendered for a template that is not
// the one that was made for it.
func mends(v view) bool {
	return v.edited && !v.pkg.PackageSpec().Paused && v.now.Sub(v.restored) >= restoreEvery
}
