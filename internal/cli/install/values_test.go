package install_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
)

// Values of others are not overwritten, and values written for a package that is refused
// are deleted again.
func TestValuesOfOthersStay(t *testing.T) {
	t.Parallel()
	mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-values"}, Data: map[string]string{"values.yaml": "mine"}}
	c := clustertest.FakeCluster(t, clustertest.OfferedAs("shop", "1.0.0"), mine)
	got := clitest.InvokeOn(t, clustertest.DialTo(c), "", "install", "shop.example.com", "web", "--values", clitest.ValuesFile(t, "title: a"))
	if got.Code != 1 || !strings.Contains(got.Err, "ConfigMap shop/web-values exists and holds no values of kubectl package") {
		t.Errorf("%+v", got)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(mine), mine); err != nil || mine.Data["values.yaml"] != "mine" {
		t.Errorf("%v %v", err, mine.Data)
	}
}
