// Opens the vectors of the sealed format with Cloudflare's circl (HPKE) and Go's own Ed25519.
//
//	open_vectors FILE...
//
// Each vector must open to its content or proof, or be refused for the reason it states; the reasons are those of
// SealedPushError. What does not is reported by name. Exit status: 0 all do, 3 some do not, 64 usage.
package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/cloudflare/circl/hpke"
)

type suite struct {
	kem                   hpke.KEM
	aead                  hpke.AEAD
	encapsulatedByteCount int
}

var suites = map[string]suite{
	"P256_SHA256_AES256GCM":          {hpke.KEM_P256_HKDF_SHA256, hpke.AEAD_AES256GCM, 65},
	"X25519_SHA256_CHACHA20POLY1305": {hpke.KEM_X25519_HKDF_SHA256, hpke.AEAD_ChaCha20Poly1305, 32},
}

var purposes = map[string]byte{"notification": 1, "challenge": 2}

const headerByteCount = 8 + 64 + 2

type vector struct {
	Name       string `json:"name"`
	Purpose    string `json:"purpose"`
	App        string `json:"app"`
	Device     string `json:"device"`
	KeyID      string `json:"kid"`
	PrivateKey string `json:"private_key"`
	PublicKey  string `json:"public_key"`
	OriginKey  string `json:"origin_key"`
	Envelope   string `json:"envelope"`
	Now        uint64 `json:"now"`
	Content    string `json:"content"`
	Proof      string `json:"proof"`
	Refused    string `json:"refused"`
}

// The envelope has one spelling: this order, no white space, lower-case digits.
var envelope = regexp.MustCompile(`\A\{"v":1,"s":"([A-Z0-9_]+)","kid":"([0-9a-f]{32})"` +
	`,"mid":"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"` +
	`,"exp":([1-9][0-9]{9}),"ct":"([A-Za-z0-9_-]+)"\}\z`)

var base64url = base64.RawURLEncoding.Strict()

// fixed decodes what the vectors themselves spell.
func fixed(text string) []byte {
	data, err := base64url.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return data
}

// bucket is the smallest that holds byteCount, 0 when none does.
func bucket(byteCount int) int {
	for _, size := range []int{256, 512, 1024, 2048} {
		if byteCount <= size {
			return size
		}
	}
	return 0
}

func name(text string) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(text))), text...)
}

func openSeal(keys suite, private, info, sealed []byte) ([]byte, error) {
	key, err := keys.kem.Scheme().UnmarshalBinaryPrivateKey(private)
	if err != nil {
		panic(err)
	}
	receiver, err := hpke.NewSuite(keys.kem, hpke.KDF_HKDF_SHA256, keys.aead).NewReceiver(key, info)
	if err != nil {
		return nil, err
	}
	opener, err := receiver.Setup(sealed[:keys.encapsulatedByteCount])
	if err != nil {
		return nil, err
	}
	return opener.Open(sealed[keys.encapsulatedByteCount:], nil)
}

// open returns the content of a notification or the proof of a challenge. Its error is the reason of a refusal.
func open(suiteName string, v vector) ([]byte, error) {
	keys := suites[suiteName]
	fields := envelope.FindStringSubmatch(v.Envelope)
	if fields == nil {
		return nil, errors.New("malformed_envelope")
	}
	named, isKnown := suites[fields[1]]
	sealed, err := base64url.DecodeString(fields[5])
	plaintextByteCount := len(sealed) - named.encapsulatedByteCount - 16
	if !isKnown || err != nil || plaintextByteCount < 1 || bucket(plaintextByteCount) != plaintextByteCount {
		return nil, errors.New("malformed_envelope")
	}
	if fields[2] != v.KeyID {
		return nil, errors.New("unknown_key")
	}
	if fields[1] != suiteName {
		return nil, errors.New("suite_mismatch")
	}
	expiresAt, _ := strconv.ParseUint(fields[4], 10, 64)
	if v.Now >= expiresAt {
		return nil, errors.New("expired")
	}

	keyID, _ := hex.DecodeString(fields[2])
	messageID, _ := hex.DecodeString(strings.ReplaceAll(fields[3], "-", ""))
	publicDigest := sha256.Sum256(fixed(v.PublicKey))
	info := append([]byte("sendgate/sealed/v1\x00"), purposes[v.Purpose])
	for _, number := range []uint16{uint16(keys.kem), uint16(hpke.KDF_HKDF_SHA256), uint16(keys.aead)} {
		info = binary.BigEndian.AppendUint16(info, number)
	}
	info = append(append(info, name(v.App)...), name(v.Device)...)
	info = append(append(append(info, keyID...), publicDigest[:]...), messageID...)
	info = binary.BigEndian.AppendUint64(info, expiresAt)

	plaintext, err := openSeal(keys, fixed(v.PrivateKey), info, sealed)
	if err != nil {
		return nil, errors.New("cannot_open")
	}
	end := headerByteCount + int(binary.BigEndian.Uint16(plaintext[72:]))
	if end > len(plaintext) || bucket(end) != len(plaintext) || len(bytes.Trim(plaintext[end:], "\x00")) > 0 {
		return nil, errors.New("malformed_message")
	}
	content := plaintext[headerByteCount:end]
	origin := fixed(v.OriginKey)
	originDigest := sha256.Sum256(origin)
	if !bytes.Equal(plaintext[:8], originDigest[:8]) {
		return nil, errors.New("unknown_origin")
	}
	infoDigest := sha256.Sum256(info)
	statement := append([]byte("sendgate/origin/v1\x00"), infoDigest[:]...)
	statement = append(append(statement, plaintext[:8]...), plaintext[72:end]...)
	if !ed25519.Verify(origin, statement, plaintext[8:72]) {
		return nil, errors.New("forged_origin")
	}

	if v.Purpose == "challenge" {
		if len(content) != 32 {
			return nil, errors.New("malformed_message")
		}
		proof := hmac.New(sha256.New, content)
		proof.Write([]byte("sendgate/possession/v1\x00"))
		proof.Write(info)
		return proof.Sum(nil), nil
	}
	// Milliseconds; a content may have no time of its own.
	var exact struct {
		ExpiresAt *uint64 `json:"expires_at"`
	}
	if json.Unmarshal(content, &exact) == nil && exact.ExpiresAt != nil && v.Now >= *exact.ExpiresAt/1000 {
		return nil, errors.New("expired")
	}
	return content, nil
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: open_vectors FILE...")
		os.Exit(64)
	}
	count, wrong := 0, 0
	for _, path := range os.Args[1:] {
		data, err := os.ReadFile(path)
		var document struct {
			Suite   string   `json:"suite"`
			Vectors []vector `json:"vectors"`
		}
		if err == nil {
			err = json.Unmarshal(data, &document)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "open_vectors: error:", err)
			os.Exit(3)
		}
		for _, v := range document.Vectors {
			count++
			opened, err := open(document.Suite, v)
			stated, found := v.Content+v.Proof, base64url.EncodeToString(opened)
			if v.Refused != "" {
				stated = "refused: " + v.Refused
			}
			if err != nil {
				found = "refused: " + err.Error()
			}
			if found != stated {
				wrong++
				// Shortened: a content may have 2,632 characters.
				fmt.Fprintf(os.Stderr, "%s: `%.30s` and not `%.30s`\n", v.Name, found, stated)
			}
		}
	}
	if wrong > 0 {
		os.Exit(3)
	}
	fmt.Printf("%d vectors hold\n", count)
}
