package main

import (
	"fmt"

	units "github.com/docker/go-units"

	"github.com/hayward-dev/hayward/config"
)

// byteSize is a flag value such as 512M or 2GiB; units are powers of 1024.
type byteSize struct{ bytes *int64 }

// String implements pflag.Value.
func (b byteSize) String() string {
	if b.bytes == nil || *b.bytes <= 0 {
		return ""
	}
	return config.Size(*b.bytes)
}

// Set implements pflag.Value.
func (b byteSize) Set(s string) error {
	n, err := units.RAMInBytes(s)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is no size: write bytes, or a number with K, M, G or T", s)
	}
	*b.bytes = n
	return nil
}

// Type implements pflag.Value.
func (byteSize) Type() string { return "SIZE" }
