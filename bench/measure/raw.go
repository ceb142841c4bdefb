package measure

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"lockstep.run/lockstep/e2e/sandbox"
)

const rawNamespace = "raw"

// RawTimes are the times of the bare API server, as medians of Rounds.
type RawTimes struct {
	Clients, Rounds              int
	CreateSeconds, DeleteSeconds float64
}

// rawRounds is the number of rounds that create and delete n objects. Small numbers of requests
// vary more.
func rawRounds(n int) int {
	if n > 2000 {
		return 1
	}
	return 3
}

// measureRaw creates and deletes n plain ConfigMaps, as large as the workload's, with parallel
// clients that each have a connection.
func (c *Cluster) measureRaw(n int) RawTimes {
	c.tb.Helper()
	c.Namespace(c.tb, rawNamespace)
	connections := make([]typedv1.ConfigMapInterface, clients)
	for i := range connections {
		client, err := kubernetes.NewForConfig(c.ownConnection())
		must(c.tb, err)
		connections[i] = client.CoreV1().ConfigMaps(rawNamespace)
		if _, err := connections[i].Get(c.tb.Context(), "none", metav1.GetOptions{}); !apierrors.IsNotFound(err) { // connects
			c.tb.Fatalf("got %v, want not found", err)
		}
	}

	var creates, deletes []time.Duration
	for range rawRounds(n) {
		creates = append(creates, c.timeRaw("create", n, func(i int) error {
			_, err := connections[i%clients].Create(c.tb.Context(), c.rawConfigMap(i), metav1.CreateOptions{})
			return err
		}))
		deletes = append(deletes, c.timeRaw("delete", n, func(i int) error {
			return connections[i%clients].Delete(c.tb.Context(), rawName(i), metav1.DeleteOptions{})
		}))
	}

	return RawTimes{Clients: clients, Rounds: len(creates), CreateSeconds: median(creates).Seconds(), DeleteSeconds: median(deletes).Seconds()}
}

func rawName(i int) string { return fmt.Sprintf("raw-%05d", i) }

func (w Workload) rawConfigMap(i int) *corev1.ConfigMap {
	data := map[string]string{"value": "v1", "text": strings.Repeat("lockstep ", 12)}
	if w.Bytes > 0 {
		data["more"] = text(rawName(i), w.Bytes)
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: rawName(i)}, Data: data}
}

// timeRaw returns the time from the arrival of the first of n requests to the end of the last one,
// from the audit log like every other time.
func (c *Cluster) timeRaw(verb string, n int, request func(i int) error) time.Duration {
	c.tb.Helper()
	mark, err := c.audit.Mark(c.tb.Context())
	must(c.tb, err)
	must(c.tb, parallel(clients, n, request))
	entries, err := c.audit.Since(c.tb.Context(), mark, byAdmin, sandbox.ByVerb(verb), sandbox.ByResource("configmaps"), inNamespace(rawNamespace))
	must(c.tb, err)
	s, err := span(entries, all(), all())
	must(c.tb, err)
	return s.Took()
}
