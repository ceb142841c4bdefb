package cluster

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/version"
)

// Cluster is a connection to an API server.
type Cluster struct {
	client.WithWatch
	// Namespace is the one that was asked for, or else that of the context.
	Namespace string
	// Host is the API server's address.
	Host string
	// Config is for clients of other kinds than this project's; nil in tests without
	// an API server.
	Config *rest.Config
}

// Connect prepares a connection as the flags say; nothing is sent yet. Warnings
// of the API server go to warnings.
func Connect(getter genericclioptions.RESTClientGetter, warnings io.Writer) (*Cluster, error) {
	loader := getter.ToRawKubeConfigLoader()
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, explainConfig(err)
	}
	config, err := getter.ToRESTConfig()
	if err != nil {
		return nil, explainConfig(err)
	}
	config.UserAgent = "kubectl-package/" + version.Get()
	config.WarningHandler = &warningWriter{out: warnings, told: map[string]bool{}}
	config.QPS, config.Burst = 50, 100
	c, err := New(config.Host, namespace, func(o client.Options) (client.WithWatch, error) {
		return client.NewWithWatch(config, o)
	})
	if err != nil {
		return nil, explainConfig(err)
	}
	c.Config = config
	return c, nil
}

// New makes a Cluster of a client that is built with the kinds of this project.
func New(host, namespace string, build func(client.Options) (client.WithWatch, error)) (*Cluster, error) {
	scheme := runtime.NewScheme()
	if err := corev1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := build(client.Options{Scheme: scheme, Mapper: mapper()})
	if err != nil {
		return nil, err
	}
	return &Cluster{WithWatch: c, Namespace: namespace, Host: host}, nil
}

// mapper knows the kinds that the command line uses.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Package", "ObjectDeployment", "ObjectSet", "ObjectSlice"} {
		m.Add(corev1alpha1.GroupVersion.WithKind(corev1alpha1.ScopeNamespaced.Kind(kind)), meta.RESTScopeNamespace)
		m.Add(corev1alpha1.GroupVersion.WithKind(corev1alpha1.ScopeCluster.Kind(kind)), meta.RESTScopeRoot)
	}
	return m
}

func explainConfig(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("the kubeconfig cannot be read: %w. Check --kubeconfig and KUBECONFIG", err)
	}
	return fmt.Errorf("the kubeconfig cannot be used: %w. Check --kubeconfig, KUBECONFIG and --context", err)
}

// warningWriter prints each warning of the API server once.
type warningWriter struct {
	out  io.Writer
	told map[string]bool
}

// HandleWarningHeader implements rest.WarningHandler. Requests are made one
// after the other, except by watches, which bring no warnings.
func (w *warningWriter) HandleWarningHeader(code int, _, text string) {
	const miscellaneous = 299
	if code != miscellaneous || text == "" || w.told[text] {
		return
	}
	w.told[text] = true
	fmt.Fprintln(w.out, "Warning: "+terminal.Line(text))
}
