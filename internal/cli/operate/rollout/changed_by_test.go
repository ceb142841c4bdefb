package rollout

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// A user is shown as recorded where the policy was there before the revision.
func TestChangedBy(t *testing.T) {
	t.Parallel()
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{
		CreationTimestamp: metav1.Unix(100, 0), Annotations: map[string]string{corev1alpha1.ChangedByAnnotation: "jane"},
	}}
	for want, recorded := range map[string][]metav1.Time{"jane": {metav1.Unix(99, 0)}, "jane (not verified)": {{}, metav1.Unix(100, 0), metav1.Unix(101, 0)}} {
		for _, since := range recorded {
			if got := changedBy(set, since); got != want {
				t.Errorf("since %s: %q, want %q", since, got, want)
			}
		}
	}
}
