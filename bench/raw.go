package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

const (
	rawNamespace = "raw"
	rawClients   = 16
	rawRounds    = 3
)

// measureRaw creates and deletes n plain ConfigMaps, as large as those of the
// workload, with parallel clients that have a connection each.
func measureRaw(tb testing.TB, env *harness.Env, audit *sandbox.Audit, n int) rawTimes {
	tb.Helper()
	env.Namespace(tb, rawNamespace)
	clients := make([]typedv1.ConfigMapInterface, rawClients)
	for i := range clients {
		config := env.Config()
		config.Dial = (&net.Dialer{}).DialContext // a dialer of its own gives a client connections of its own
		client, err := kubernetes.NewForConfig(config)
		must(tb, err)
		clients[i] = client.CoreV1().ConfigMaps(rawNamespace)
		_, err = clients[i].Get(tb.Context(), "none", metav1.GetOptions{}) // connects
		mustNotFind(tb, err)
	}
	var creates, deletes []time.Duration
	for range rawRounds {
		creates = append(creates, timeRaw(tb, audit, "create", n, func(client, i int) error {
			_, err := clients[client].Create(tb.Context(), rawConfigMap(i), metav1.CreateOptions{})
			return err
		}))
		deletes = append(deletes, timeRaw(tb, audit, "delete", n, func(client, i int) error {
			return clients[client].Delete(tb.Context(), rawConfigMap(i).Name, metav1.DeleteOptions{})
		}))
	}
	return rawTimes{Clients: rawClients, Rounds: rawRounds, CreateSeconds: median(creates).Seconds(), DeleteSeconds: median(deletes).Seconds()}
}

func rawConfigMap(i int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("raw-%05d", i)},
		Data:       map[string]string{"value": "v1", "text": strings.Repeat("lockstep ", 12)},
	}
}

// timeRaw returns the time from the arrival of the first to the end of the last
// of n requests, from the audit log like every other time.
func timeRaw(tb testing.TB, audit *sandbox.Audit, verb string, n int, request func(client, i int) error) time.Duration {
	tb.Helper()
	mark, err := audit.Mark(tb.Context())
	must(tb, err)
	must(tb, parallel(rawClients, n, request))
	entries, err := audit.Since(tb.Context(), mark, sandbox.ByUser(sandbox.AdminUser), sandbox.ByVerb(verb), sandbox.ByResource("configmaps"))
	must(tb, err)
	whatever := func(sandbox.Entry) bool { return true }
	took, err := span(entries, whatever, whatever)
	must(tb, err)
	return took
}

// parallel calls f for 0 to n-1 from a number of workers, and returns the first
// error; the worker that meets it stops.
func parallel(workers, n int, f func(worker, i int) error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	next := make(chan int)
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for i := range next {
				if err := f(worker, i); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	group.Wait()
	return context.Cause(ctx)
}
