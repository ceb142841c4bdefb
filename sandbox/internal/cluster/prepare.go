package cluster

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"time"

	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodelease "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
)

// prepare makes a fresh data folder with keys and configuration files, and chooses ports and
// tokens.
func prepare(o Options, choosePorts func() (ports, error)) (launch, error) {
	chosen, err := choosePorts()
	if err != nil {
		return launch{}, err
	}

	l := launch{layout: layout{o.Dir}, ports: chosen, token: "sandbox-" + randomToken()}
	for _, dir := range []string{l.pki(), l.config(), l.logs(), l.etcdData(), l.registryData()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return l, fmt.Errorf("creating the data folder: %w", err)
		}
	}

	if err := writeIdentities(l.layout, o.Name, l.serverURL()); err != nil {
		return l, err
	}

	return l, l.writeConfig(o)
}

func (l launch) writeConfig(o Options) error {
	policy := []byte(defaultAuditPolicy)
	if o.AuditPolicy != "" {
		content, err := os.ReadFile(o.AuditPolicy)
		if err != nil {
			return fmt.Errorf("reading the audit policy: %w", err)
		}
		policy = content
	}

	stages := []string{
		nodefast.DefaultNodeInit, nodelease.DefaultNodeHeartbeatWithLease,
		delayed(podfast.DefaultPodReady, o.PodReadyAfter), podfast.DefaultPodComplete, podfast.DefaultPodDelete,
	}

	for path, content := range map[string][]byte{
		l.auditPolicy(): policy,
		l.schedConfig(): []byte(l.schedulerConfig()),
		l.kwokConfig():  []byte(kwokConfiguration(stages...)),
		l.auditLog():    nil, // readers can open it before the first request
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("writing configuration: %w", err)
		}
	}

	return nil
}

// delayed is a stage of kwok that waits before it plays.
func delayed(stage string, delay time.Duration) string {
	return strings.Replace(stage, "\nspec:\n", fmt.Sprintf("\nspec:\n  delay:\n    durationMilliseconds: %d\n", delay.Milliseconds()), 1)
}

// randomToken returns 26 random lower-case characters.
func randomToken() string {
	const alphabet = "abcdefghijklmnopqrstuvwxyz234567"
	bytes := make([]byte, 26)
	_, _ = rand.Read(bytes) // never fails
	for i, b := range bytes {
		bytes[i] = alphabet[b%32]
	}
	return string(bytes)
}
