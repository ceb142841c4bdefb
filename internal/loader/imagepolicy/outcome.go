package imagepolicy

// Outcome is the result of verifying an image that is used: its signer or, if the image is used
// anyway, why it is not trusted.
type Outcome struct {
	Verified *Verified
	Refusal  *Refusal
}

// Outcome turns the result of a verification into the result of a decision. If the image must not
// be used, it returns an error: a *Refusal, or err itself if the registry did not answer.
func (d *Decision) Outcome(image string, verified *Verified, err error) (*Outcome, error) {
	refusal := RefusalOf(err)
	switch {
	case err == nil:
		own := *verified
		own.Policy = d.Policy
		return &Outcome{Verified: &own}, nil
	case refusal == nil:
		return nil, err
	}

	refusal = refusal.About(image)
	refusal.Message += " (ImageConfig " + d.Policy + ")"
	if d.Verification.Mode == Warn {
		return &Outcome{Refusal: refusal}, nil
	}

	return nil, refusal
}
