package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ImageConfigSpec sets rules for images with a prefix. For each purpose separately, the ImageConfig
// with the longest prefix wins. If two have the same prefix, neither applies, and the images are
// refused.
//
// +kubebuilder:validation:XValidation:rule="has(self.rewrite) || has(self.pullSecretRef) || has(self.verification)",message="it is empty: set rewrite, pullSecretRef or verification"
type ImageConfigSpec struct {
	// MatchImages selects images of Packages and repositories, and images that packages
	// name, by their references.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=prefix
	MatchImages []ImageMatch `json:"matchImages"`

	// Rewrite changes the place that images are pulled from. It is applied once, and
	// the manager's flags do not change its results.
	// +optional
	Rewrite *ImageRewrite `json:"rewrite,omitempty"`

	// PullSecretRef names a Secret in the namespace of the manager, with credentials
	// for the registry that the images are pulled from. They apply to images of all
	// namespaces.
	// +optional
	PullSecretRef *LocalSecretReference `json:"pullSecretRef,omitempty"`

	// Verification requires signatures of the images.
	// +optional
	Verification *ImageVerification `json:"verification,omitempty"`
}

// ImageMatch matches references of images.
type ImageMatch struct {
	// Prefix of references: a host, with its port if it has one, and segments of a
	// path. ghcr.io/acme matches ghcr.io/acme/shop, but not ghcr.io/acme-evil.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(localhost|[A-Za-z0-9-]+([.:][A-Za-z0-9-]+)+)(/[a-z0-9._-]+)*/?$`
	Prefix string `json:"prefix"`
}

// ImageRewrite changes references.
type ImageRewrite struct {
	// Prefix replaces the one that matched.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Prefix string `json:"prefix"`
}

// ImageVerificationMode is the consequence for an image that is not verified.
// +kubebuilder:validation:Enum=Enforce;Warn
type ImageVerificationMode string

// Modes of a verification.
const (
	ImageVerificationEnforce ImageVerificationMode = "Enforce"
	ImageVerificationWarn    ImageVerificationMode = "Warn"
)

// VerifiedImages is a use of images.
// +kubebuilder:validation:Enum=Package;Repository
type VerifiedImages string

// Uses of images.
const (
	VerifiedImagesPackage    VerifiedImages = "Package"
	VerifiedImagesRepository VerifiedImages = "Repository"
)

// ImageVerification requires a signature by one of its authorities.
type ImageVerification struct {
	// Mode Enforce uses no content of an image that is not verified; the installed
	// package stays. Warn only reports it in the condition Verified.
	// +kubebuilder:default=Enforce
	// +optional
	Mode ImageVerificationMode `json:"mode,omitempty"`

	// Images are the uses of images that need a signature. Images of packages are
	// verified before they are rendered, images of repositories before their content is
	// offered.
	// +kubebuilder:default={Package,Repository}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +listType=set
	// +optional
	Images []VerifiedImages `json:"images,omitempty"`

	// Authorities whose signatures are accepted.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Authorities []ImageAuthority `json:"authorities"`
}

// ImageAuthority is a key, or identities that certificates are issued to.
//
// +kubebuilder:validation:XValidation:rule="has(self.key) != has(self.keyless)",message="set either key or keyless"
type ImageAuthority struct {
	// Name in messages.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`

	// Key is a public key.
	// +optional
	Key *ImageAuthorityKey `json:"key,omitempty"`

	// Keyless are identities in certificates.
	// +optional
	Keyless *ImageAuthorityKeyless `json:"keyless,omitempty"`
}

// ImageAuthorityKey is a public key in PEM form: ECDSA, RSA or Ed25519.
//
// +kubebuilder:validation:XValidation:rule="(has(self.secretRef) ? 1 : 0) + (has(self.configMapRef) ? 1 : 0) + (has(self.pem) ? 1 : 0) == 1",message="set one of secretRef, configMapRef and pem"
type ImageAuthorityKey struct {
	// SecretRef names a key of a Secret in the namespace of the manager.
	// +optional
	SecretRef *ImageKeyRef `json:"secretRef,omitempty"`

	// ConfigMapRef names a key of a ConfigMap in the namespace of the manager.
	// +optional
	ConfigMapRef *ImageKeyRef `json:"configMapRef,omitempty"`

	// PEM is the public key itself.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	PEM string `json:"pem,omitempty"`

	// NotBefore is when the key becomes valid.
	// +optional
	NotBefore *metav1.Time `json:"notBefore,omitempty"`

	// NotAfter is when the key expires. After that, none of its signatures are accepted, including
	// earlier ones.
	// +optional
	NotAfter *metav1.Time `json:"notAfter,omitempty"`
}

// ImageAuthorityKeyless are identities that a certificate authority attests.
type ImageAuthorityKeyless struct {
	// Identities that certificates can have.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Identities []ImageIdentity `json:"identities"`

	// TrustedRootRef names a key of a ConfigMap in the namespace of the manager, with certificate
	// authorities and logs in the form of Sigstore's trusted_root.json. It is never downloaded.
	TrustedRootRef ImageKeyRef `json:"trustedRootRef"`

	// TransparencyLog decides whether a signature needs an entry in a transparency log
	// of the trusted root.
	// +kubebuilder:default=Required
	// +optional
	TransparencyLog TransparencyLogMode `json:"transparencyLog,omitempty"`
}

// TransparencyLogMode selects whether a signature needs an entry in a log.
// +kubebuilder:validation:Enum=Required;Ignore
type TransparencyLogMode string

// Modes of transparency logs.
const (
	TransparencyLogRequired TransparencyLogMode = "Required"
	TransparencyLogIgnore   TransparencyLogMode = "Ignore"
)

// ImageIdentity is who a certificate is issued to, and who attested it. Regular
// expressions (RE2) match whole values.
//
// +kubebuilder:validation:XValidation:rule="has(self.issuer) != has(self.issuerRegExp)",message="set either issuer or issuerRegExp"
// +kubebuilder:validation:XValidation:rule="has(self.subject) != has(self.subjectRegExp)",message="set either subject or subjectRegExp"
type ImageIdentity struct {
	// Issuer is the OpenID Connect issuer.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Issuer string `json:"issuer,omitempty"`

	// IssuerRegExp is an expression for it.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	IssuerRegExp string `json:"issuerRegExp,omitempty"`

	// Subject is the subject alternative name of the certificate.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Subject string `json:"subject,omitempty"`

	// SubjectRegExp is an expression for it.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	SubjectRegExp string `json:"subjectRegExp,omitempty"`
}

// ImageKeyRef names a key of a Secret or a ConfigMap.
type ImageKeyRef struct {
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Key in it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// ImageConfigStatus is the observed state of an ImageConfig.
type ImageConfigStatus struct {
	// Conditions: Ready, Reconciling, Stalled. If Stalled is True, the reason is
	// Conflicting, InvalidPrefix or TrustRootInvalid.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}
