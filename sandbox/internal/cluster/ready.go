package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// pollInterval is the pause between two checks of a starting component.
const pollInterval = 25 * time.Millisecond

// waitFor calls check until it succeeds or ctx ends. The error then has the subject of the wait and
// the last error of check.
func waitFor(ctx context.Context, what string, check func(context.Context) error) error {
	var last error
	for {
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := check(attempt)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w (%w)", what, last, context.Cause(ctx))
		case <-time.After(pollInterval):
		}
	}
}

// checkEtcd succeeds if the etcd at the launch's port is the launch's own.
func (l launch) checkEtcd(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.etcdURL()+"/v3/cluster/member/list", bytes.NewBufferString("{}"))
	if err != nil {
		return err
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}

	defer response.Body.Close()
	var answer struct {
		Members []struct {
			Name string `json:"name"`
		} `json:"members"`
	}

	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("HTTP status %d: %w", response.StatusCode, err)
	}
	if len(answer.Members) != 1 || answer.Members[0].Name != l.token {
		return fmt.Errorf("port %d belongs to the etcd of someone else", l.ports.EtcdClient)
	}

	return nil
}

// checkRegistry succeeds if the registry answers.
func (l launch) checkRegistry(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.registryHost()+"/v2/", nil)
	if err != nil {
		return err
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}

	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP status %d", response.StatusCode)
	}

	return nil
}

// client returns a client with the supervisor's identity.
func (l launch) client() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig("supervisor"))
	if err != nil {
		return nil, fmt.Errorf("reading the supervisor's kubeconfig: %w", err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return client, nil
}

func checkAPIServer(client kubernetes.Interface) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	}
}

// checkServiceAccounts succeeds if the controller manager has started to work.
func checkServiceAccounts(client kubernetes.Interface) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	}
}

// createNodes makes the simulated nodes; kwok fills in their status.
func createNodes(ctx context.Context, client kubernetes.Interface, count int) error {
	for i := range count {
		name := fmt.Sprintf("node-%d", i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
			Labels: map[string]string{
				"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
				"node-role.kubernetes.io/agent": "", "type": "kwok",
			},
		}}
		_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating node %s: %w", name, err)
		}
	}

	return nil
}

// checkNodes succeeds if count nodes are ready and free of taints, so that pods are scheduled at
// once.
func checkNodes(client kubernetes.Interface, count int) func(context.Context) error {
	return func(ctx context.Context) error {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := 0
		for _, node := range nodes.Items {
			for _, c := range node.Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0 {
					ready++
				}
			}
		}
		if ready < count {
			return fmt.Errorf("%d of %d nodes are ready", ready, count)
		}
		return nil
	}
}

// portTaken reports whether a process listens on one of the ports. After a failed start this means
// that a port was lost to another process.
func (p ports) portTaken() bool {
	for _, port := range []int{p.EtcdClient, p.EtcdPeer, p.APIServer, p.Registry} {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return true
		}
		listener.Close()
	}
	return false
}
