package sources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/internal/objects"
)

// pullKeys are the types of Secrets with registry credentials, and their keys.
var pullKeys = map[string]string{
	"kubernetes.io/dockerconfigjson": ".dockerconfigjson",
	"kubernetes.io/dockercfg":        ".dockercfg",
}

// Credentials reads the pull secrets of Packages and of the manager's service account. It is safe
// for concurrent use.
type Credentials struct {
	get     Get
	watches *Watches
	account Ref
	guard   *Guard
}

// NewCredentials returns credentials that read with get if guard permits it. account is the
// manager's service account.
func NewCredentials(get Get, watches *Watches, account Ref, guard *Guard) *Credentials {
	return &Credentials{get: get, watches: watches, account: account, guard: guard}
}

// PullSecret returns the pull secret of an ImageConfig, which is in the manager's namespace, or nil
// if name is empty.
func PullSecret(namespace, name string) []Ref {
	if name == "" {
		return nil
	}
	return []Ref{{Kind: KindSecret, Namespace: namespace, Name: name}}
}

// Keychain returns credentials from three sources, in this order: pull secrets in refs that the
// reader is allowed to read; the pull secrets of an ImageConfig, which the manager reads for
// everyone; and, unless ownOnly is set, the ones of the manager's service account. missing names
// the unusable ones with the reasons. This is not an error, because a registry might need no
// credentials.
func (c *Credentials) Keychain(
	ctx context.Context, reader objects.Account, refs, ofPolicy []Ref, ownOnly bool,
) (keys authn.Keychain, missing []string, err error) {
	shared := slices.Clone(ofPolicy)
	if !ownOnly {
		account, problem, err := c.allowed(ctx, c.account)
		if err != nil {
			return nil, nil, err
		}
		if problem != "" {
			missing = append(missing, problem)
		}
		if account != nil {
			shared = append(shared, account.PullSecrets...)
		}
	}

	read := 0
	keys, more, err := keychain(ctx, slices.Concat(refs, shared), func(ctx context.Context, ref Ref) (*Object, string, error) {
		// The Secrets after refs are the manager's and the ImageConfigs', which no reader needs
		// rights for.
		if read++; read > len(refs) {
			return c.allowed(ctx, ref)
		}
		var forbidden *ForbiddenError
		if err := c.guard.Check(ctx, reader, ref); errors.As(err, &forbidden) {
			return nil, forbidden.Error(), nil
		} else if err != nil {
			return nil, "", err
		}
		return c.allowed(ctx, ref)
	})

	return keys, append(missing, more...), err
}

// Keychain returns the credentials in refs for a user, who might not be allowed to read all of
// them.
func Keychain(ctx context.Context, get Get, refs []Ref) (keys authn.Keychain, missing []string, err error) {
	return keychain(ctx, refs, func(ctx context.Context, ref Ref) (*Object, string, error) {
		object, err := get(ctx, ref)
		if apierrors.IsForbidden(err) {
			return nil, fmt.Sprintf("you may not read %s", ref), nil
		}
		return object, "", err
	})
}

// keychain reads the pull secrets in refs. read returns a problem for an unreadable one.
func keychain(
	ctx context.Context, refs []Ref, read func(context.Context, Ref) (*Object, string, error),
) (keys authn.Keychain, missing []string, err error) {
	var contents [][]byte
	for _, ref := range refs {
		object, problem, err := read(ctx, ref)
		if err != nil {
			return nil, nil, err
		}
		if problem != "" {
			missing = append(missing, problem)
			continue
		}
		content, problem := credentialsOf(object)
		if problem != "" {
			missing = append(missing, fmt.Sprintf("%s %s", ref, problem))
			continue
		}
		contents = append(contents, content)
	}

	keys, err = registry.NewKeychain(contents...)
	return keys, missing, err
}

// allowed reads an object. It returns a problem if the manager lacks the right to.
func (c *Credentials) allowed(ctx context.Context, ref Ref) (object *Object, problem string, err error) {
	object, err = c.read(ctx, ref)
	if apierrors.IsForbidden(err) {
		return nil, fmt.Sprintf("the manager has no right to read %s: give it the rights of config/rbac", ref), nil
	}
	return object, "", err
}

// credentialsOf returns the content of a pull secret, or why it has none.
func credentialsOf(object *Object) (content []byte, problem string) {
	if object == nil {
		return nil, "does not exist"
	}

	key, ok := pullKeys[object.Type]
	if !ok {
		return nil, "is neither of type kubernetes.io/dockerconfigjson nor kubernetes.io/dockercfg"
	}
	if content = object.Data[key]; content == nil {
		return nil, "has no key " + key
	}
	if _, err := registry.NewKeychain(content); err != nil {
		_, cause, _ := strings.Cut(err.Error(), ": ")
		return nil, "cannot be read: " + cause
	}

	return content, ""
}

// read returns an object. It uses the copy in memory if the object is watched and has not changed,
// so that resolving tags does not read it.
func (c *Credentials) read(ctx context.Context, ref Ref) (*Object, error) {
	state := c.watches.State(ref)
	if kept := state.kept; kept != nil && state.Known && kept.version == state.Version {
		return kept.object, nil
	}

	object, err := c.get(ctx, ref)
	if err != nil || !state.Known {
		return object, err
	}

	c.watches.keep(ref, &keptObject{version: state.Version, object: object})
	if ref == c.account {
		c.follow(object)
	}

	return object, nil
}

// Follow watches the manager's service account, and its pull secrets once they are known.
func (c *Credentials) Follow() { c.follow(nil) }

func (c *Credentials) follow(account *Object) {
	refs := []Ref{c.account}
	if account != nil {
		refs = append(refs, account.PullSecrets...)
	}
	c.watches.Use(accountUser, sorted(refs))
}
