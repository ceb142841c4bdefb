package rollout_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
)

// The switch by one YAML that is applied.
func TestSwitchByYAML(t *testing.T) { newWays(t).all(3) }

// The switch by Helm.
func TestSwitchByHelm(t *testing.T) {
	w := newWays(t)
	helm := harness.Helm(t)
	for _, name := range []string{"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} {
		t.Setenv(name, t.TempDir())
	}
	w.to = func(version string) {
		w.typed(helm, "upgrade", "--install", "lockstep", "../../config/chart", "--namespace", corev1alpha1.DefaultNamespace, "--take-ownership", "--force-conflicts",
			"--set", "manager.image.tag="+version+",manager.image.digest="+harness.EngineDigest(version))
	}
	w.undo = func(string) { w.typed(helm, "rollback", "lockstep", "--namespace", corev1alpha1.DefaultNamespace) }
	w.to(formerVersion)
	w.deployed(formerVersion)
	w.all(3)
}

func own() *corev1alpha1.ClusterPackage {
	return &corev1alpha1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: corev1alpha1.EnginePackage}}
}

// The switch by the engine's own package.
func TestSwitchByOwnPackage(t *testing.T) {
	w := newWays(t)
	images := map[string]string{}
	for _, version := range []string{formerVersion, presentVersion, crashes, hangs, absent} {
		images[version] = w.env.Push(t, "lockstep-package:"+version, harness.EngineFiles(t, version))
	}
	w.pkg("adopt-engine", "--self", "--image", images[formerVersion], "--insecure-registry", w.env.Registry(), "--yes")
	w.own = true
	w.settled(formerVersion)
	w.to = func(version string) {
		harness.Edit(t, w.env, own(), func(p *corev1alpha1.ClusterPackage) {
			p.Spec.Image, p.Spec.ProgressDeadlineSeconds = images[version], nil
			if version == hangs {
				p.Spec.ProgressDeadlineSeconds = ptr.To[int32](20)
			}
		})
	}
	w.undo = func(string) { w.pkg("rollout", "undo", "clusterpackage/"+corev1alpha1.EnginePackage, "--yes") }
	w.all(4)
}

// pulled waits until the status names the command that names the image and the reason.
func (w *ways) pulled() {
	w.Helper()
	harness.Await(w.T, w.env, harness.Patience, own(), "to wait for the Job", func(p *corev1alpha1.ClusterPackage) error {
		for _, b := range p.Status.Blocking {
			if b.Name == "lockstep-rehearse" && strings.Contains(b.Message, "kubectl package explain clusterpackage/package-operator") && p.Status.ObservedGeneration == p.Generation {
				return nil
			}
		}
		return fmt.Errorf("%+v", p.Status)
	})
	out := w.pkg("explain", "clusterpackage/"+corev1alpha1.EnginePackage)
	for _, text := range []string{harness.EngineImage(absent), "ImagePullBackOff"} {
		if !strings.Contains(out, text) {
			w.Errorf("explain lacks %q", text)
		}
	}
}

// deadline waits until the own package has missed its deadline.
func (w *ways) deadline() {
	w.Helper()
	harness.Await(w.T, w.env, harness.Patience, own(), "to miss its deadline", func(p *corev1alpha1.ClusterPackage) error {
		c := meta.FindStatusCondition(p.Status.Conditions, corev1alpha1.ConditionProgressing)
		if c == nil || c.Reason != corev1alpha1.ReasonProgressDeadlineExceeded {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
}
