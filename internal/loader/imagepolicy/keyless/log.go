package keyless

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	rekortiles "github.com/sigstore/rekor-tiles/v2/pkg/generated/protobuf"
	"google.golang.org/protobuf/encoding/protojson"

	"lockstep.run/lockstep/internal/limits"
)

// tiles is a transparency log of version 2. The library's own client of this version has a transport of its own.
type tiles struct {
	client *http.Client
	url    string
}

// Add implements sign.RekorV2Client.
func (l *tiles) Add(ctx context.Context, entry any) (*protorekor.TransparencyLogEntry, error) {
	record, ok := entry.(*rekortiles.HashedRekordRequestV002)
	if !ok {
		return nil, fmt.Errorf("%T is no entry of a log of version 2", entry)
	}
	body, err := protojson.Marshal(&rekortiles.CreateEntryRequest{Spec: &rekortiles.CreateEntryRequest_HashedRekordRequestV002{HashedRekordRequestV002: record}})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := l.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if body, err = io.ReadAll(io.LimitReader(response.Body, limits.SigningAnswerBytes+1)); err != nil { // the transport refuses more
		return nil, err
	}
	if response.StatusCode != http.StatusCreated {
		return nil, fmt.Errorf("it answered %d: %s", response.StatusCode, body)
	}
	made := &protorekor.TransparencyLogEntry{}
	return made, protojson.Unmarshal(body, made)
}
