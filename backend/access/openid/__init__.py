"""Sign-in through an identity provider: OpenID Connect, the code flow with PKCE."""
