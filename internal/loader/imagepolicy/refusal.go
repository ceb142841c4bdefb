package imagepolicy

import "errors"

// Reason is why an image is not trusted. It is the reason of the condition Verified.
type Reason string

// Reasons of a Refusal.
const (
	// ReasonNoSignature: the registry has no signature of the image. Attestations are not
	// signatures.
	ReasonNoSignature Reason = "NoSignature"
	// ReasonSignatureInvalid: no authority accepts a signature of this image.
	ReasonSignatureInvalid Reason = "SignatureInvalid"
	// ReasonIdentityMismatch: the signature is good, but no authority names its identity.
	ReasonIdentityMismatch Reason = "IdentityMismatch"
	// ReasonKeyExpired: the signature is good, but its key is not valid now.
	ReasonKeyExpired Reason = "KeyExpired"
	// ReasonTrustRootInvalid: a key or a trusted root of the policy is unusable.
	ReasonTrustRootInvalid Reason = "TrustRootInvalid"
	// ReasonRegistryUnreachable: it is unknown whether there is a signature.
	ReasonRegistryUnreachable Reason = "RegistryUnreachable"
	// ReasonConflicting: two policies have the same prefix.
	ReasonConflicting Reason = "Conflicting"
	// ReasonInvalidPrefix: a prefix of a policy does not consist of whole segments.
	ReasonInvalidPrefix Reason = "InvalidPrefix"
	// ReasonInvalidReference: the reference cannot be compared with prefixes.
	ReasonInvalidReference Reason = "InvalidReference"
	// ReasonNoPolicy: verification is required, but no policy covers the image.
	ReasonNoPolicy Reason = "NoPolicy"
)

// Refusal is why an image is not trusted. Its text quotes no key.
type Refusal struct {
	Reason  Reason
	Message string
	// Image is the reference of the image as written.
	Image string
	// Err is why the registry did not answer, with ReasonRegistryUnreachable.
	Err error
}

// Error implements error.
func (r *Refusal) Error() string {
	if r.Image == "" {
		return r.Message
	}
	return "the image " + r.Image + " is not verified: " + r.Message
}

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// About returns a copy of the refusal for an image.
func (r *Refusal) About(image string) *Refusal {
	own := *r
	own.Image = image
	return &own
}

// Unknown reports whether the registry did not answer, so that the image might be trusted after
// all.
func (r *Refusal) Unknown() bool { return r.Reason == ReasonRegistryUnreachable }

// Unreachable returns the refusal of an image whose signatures could not be read.
func Unreachable(err error) *Refusal {
	return &Refusal{Reason: ReasonRegistryUnreachable, Message: "its signatures cannot be read: " + err.Error(), Err: err}
}

// RefusalOf returns the refusal in an error's chain, or nil.
func RefusalOf(err error) *Refusal {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return refusal
	}
	return nil
}
