package objects_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
)

func TestMayAdopt(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason          string
		kind, namespace string
		annotation      string
		controlled      bool
		cluster         types.UID
		want            bool
	}{
		{reason: "the Package of that name", kind: "ObjectDeployment", namespace: "shop", annotation: "shop/web", want: true},
		{reason: "the ClusterPackage of that name", kind: "ClusterObjectDeployment", annotation: "web", want: true},
		{reason: "without the annotation", kind: "ObjectDeployment", namespace: "shop"},
		{reason: "without a name", kind: "ClusterObjectDeployment", annotation: "/"},
		{reason: "another namespace", kind: "ObjectDeployment", namespace: "shop", annotation: "store/web"},
		{reason: "another name", kind: "ObjectDeployment", namespace: "shop", annotation: "shop/web-2"},
		{reason: "the ClusterPackage, not the Package", kind: "ObjectDeployment", namespace: "shop", annotation: "web"},
		{reason: "the Package, not the ClusterPackage", kind: "ClusterObjectDeployment", annotation: "shop/web"},
		{reason: "a set of that name", kind: "ObjectSet", namespace: "shop", annotation: "shop/web"},
		{reason: "controlled by another", kind: "ObjectDeployment", namespace: "shop", annotation: "shop/web", controlled: true},
		{reason: "of another cluster", kind: "ObjectDeployment", namespace: "shop", annotation: "shop/web", cluster: "c"},
	} {
		owner := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: tc.kind, Namespace: tc.namespace, Name: "web"}, UID: "u", Cluster: tc.cluster}
		obs := &objects.Observed{AdoptableBy: tc.annotation}
		if tc.controlled {
			ref := metav1.OwnerReference{Kind: "Release", Name: "web", UID: "other", Controller: ptr.To(true)}
			obs.Owners = []objects.Reference{{OwnerReference: ref}}
		}
		if got := owner.MayAdopt(obs); got != tc.want {
			t.Errorf("%s: got %t", tc.reason, got)
		}
	}
}
