package imagepolicy

import "errors"

// Reason is why an image is not trusted. It is the reason of the condition Verified.
type Reason string

// Reasons of a Refusal.
const (
	// ReasonNoSignature: the registry has no signature of the image; attestations are none.
	ReasonNoSignature Reason = "NoSignature"
	// ReasonSignatureInvalid: none of the signatures is one of this image by an authority.
	ReasonSignatureInvalid Reason = "SignatureInvalid"
	// ReasonIdentityMismatch: the signature is good, and by an identity that no authority names.
	ReasonIdentityMismatch Reason = "IdentityMismatch"
	// ReasonKeyExpired: the signature is good, and its key is not valid now.
	ReasonKeyExpired Reason = "KeyExpired"
	// ReasonTrustRootInvalid: a key or a trusted root of the policy cannot be used.
	ReasonTrustRootInvalid Reason = "TrustRootInvalid"
	// ReasonRegistryUnreachable: whether there is a signature is not known.
	ReasonRegistryUnreachable Reason = "RegistryUnreachable"
	// ReasonConflicting: two policies have the same prefix.
	ReasonConflicting Reason = "Conflicting"
	// ReasonInvalidPrefix: a prefix of a policy is none of whole segments.
	ReasonInvalidPrefix Reason = "InvalidPrefix"
	// ReasonInvalidReference: the reference cannot be compared with prefixes.
	ReasonInvalidReference Reason = "InvalidReference"
	// ReasonNoPolicy: verification is required, and no policy is about the image.
	ReasonNoPolicy Reason = "NoPolicy"
)

// Refusal is why an image is not trusted. Its text quotes no key.
type Refusal struct {
	Reason  Reason
	Message string
	// Image is the reference that it is about, as it is written.
	Image string
	// Err is why the registry could not be asked, with ReasonRegistryUnreachable.
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

// About returns the refusal of an image.
func (r *Refusal) About(image string) *Refusal {
	own := *r
	own.Image = image
	return &own
}

// Unknown reports whether the registry did not answer, so that the image may be trusted as well.
func (r *Refusal) Unknown() bool { return r.Reason == ReasonRegistryUnreachable }

// Unreachable is the refusal of an image whose signatures could not be read.
func Unreachable(err error) *Refusal {
	return &Refusal{Reason: ReasonRegistryUnreachable, Message: "its signatures cannot be read: " + err.Error(), Err: err}
}

// RefusalOf returns the refusal that an error is about, or nil.
func RefusalOf(err error) *Refusal {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return refusal
	}
	return nil
}
