package dryrun

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
)

// asAccount sends a dry run as an account. If the user may not impersonate the account, it sends
// the dry run as the user.
func (c *simulatedCluster) asAccount(account objects.Account, send func(*apply.Writer) error) error {
	if !c.impersonated(account) {
		return send(c.Writer)
	}
	// The API server checks the right to impersonate first, so a refusal is not about the write
	// itself.
	err := send(c.Writer.As(account.User()))
	if denied, is := apply.AsUnauthorized(err); !is || denied.Verb != "impersonate" {
		return err
	}
	c.asUser[account] = true

	return send(c.Writer)
}

// impersonated reports whether dry runs are made as the account.
func (c *simulatedCluster) impersonated(account objects.Account) bool {
	return !account.IsZero() && !c.asUser[account]
}

// accountWarnings name the accounts that dry runs could not impersonate.
func (c *simulatedCluster) accountWarnings() []string {
	var warnings []string
	for account := range c.asUser {
		warnings = append(warnings, fmt.Sprintf("you may not impersonate %s: the dry runs use your own rights, so it is not known whether it may write the objects", account))
	}
	// Sorted, because the order of a map would make two plans of the same state differ.
	slices.Sort(warnings)

	return warnings
}

// accountExists reads a ServiceAccount. If the user may not read it, it is assumed to exist.
func (c *Cluster) accountExists(ctx context.Context, account objects.Account) (bool, error) {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	err := c.Reader.Get(ctx, client.ObjectKey{Namespace: account.Namespace, Name: account.Name}, m)
	switch {
	case apply.IsAbsent(err):
		return false, nil
	// A user without the right to read accounts can still plan. The engine reports a missing
	// account.
	case apierrors.IsForbidden(err):
		return true, nil
	}
	return err == nil, err
}
