package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"time"
)

type Claims struct {
	Issuer   string   `json:"iss"`
	Audience string   `json:"aud"`
	Expires  int64    `json:"exp"`
	Username string   `json:"preferred_username"`
	Roles    []string `json:"roles"`
}

func verify(token, secret string) (claims Claims, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims, errors.New("not a token")
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(parts[0] + "." + parts[1]))
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !hmac.Equal(mac.Sum(nil), signature) {
		return claims, errors.New("wrong signature")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return claims, err
	}
	if err = json.Unmarshal(payload, &claims); err != nil {
		return claims, err
	}
	if claims.Issuer != "console-gateway" || claims.Audience != "orders" {
		return claims, errors.New("a token for another service")
	}
	if time.Now().Unix() > claims.Expires+5 {
		return claims, errors.New("the token has expired")
	}
	return claims, nil
}

func main() {
	claims, err := verify(os.Args[1], os.Getenv("JWT_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(claims.Username)
}
