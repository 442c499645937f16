"""What looks like a secret, and what only looks a little like one.

The samples are put together here, so that no forge's push protection takes this file for a leak.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from gitmem.errors import UsageError
from gitmem.records import lines as record_lines
from gitmem.text.secrets import (
    FORMAT_SHORTEST,
    FORMATS,
    MARKERS,
    PROSE_WORDS,
    SHORTEST,
    WORDS,
    find_in,
    find_secret,
    locate,
    may_hold_secret,
)
from tests.each import each

MIXED = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6kL9nP2rS5tV8xY1zA4cE7gI0kM3oQ6sU9wX2zB5dG8fH1jL4nP7r"
UPPER = "QWERTYUIOPASDFGHJKLZXCVB2345"

HEX = "3f9a2c7e1b5d8046af92e3c17b5d0846e2a91f3c7d5b80462c9e1fa73d5b8064"
SHOWN_AS_REFUSED = "$ gitmem signal 'The staging database is "  # in troubleshooting
SMALL = "k3v9x2m7q1z5w8r4t6y0p3n9b2c7d1f5g8h4j6"
UUID = "7b3e19c4-52d8-4f60-9a17-c4e8d2b05f36"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


SECRETS = [
    ("an AWS access key", "AK" + "IA" + UPPER[:12] + "2345"),
    ("an AWS access key", "AS" + "IA" + UPPER[:12] + "2345"),
    ("an AWS secret key", "aws_secret_" + "access_key = " + MIXED[:40]),
    ("an AWS secret key", "AWS_SECRET_" + 'ACCESS_KEY="' + MIXED[:40] + '"'),
    ("an AWS secret key", '"Secret' + 'AccessKey": "' + MIXED[:40].replace("B", "/") + '"'),
    ("a Google API key", "AI" + "za" + MIXED[:35]),
    ("a Google OAuth secret", "GOC" + "SPX-" + MIXED[:28]),
    ("a private key", '{"private_key": "-----BEGIN ' + 'PRIVATE KEY-----\\nMIIE"}'),
    ("a private key", "-----BEGIN " + "OPENSSH PRIVATE KEY-----\nb3Bl"),
    ("a private key", "-----BEGIN " + "PGP PRIVATE KEY BLOCK-----"),
    ("a private key", "-----BEGIN " + "RSA PRIVATE KEY-----"),
    ("an Azure storage key", "Account" + "Key=" + MIXED[:86] + "=="),
    ("an Azure client secret", "abc8" + "Q~" + MIXED[:34]),
    *(("a GitHub token", f"gh{letter}" + "_" + MIXED[:36]) for letter in "pousr"),
    ("a GitHub token", "github" + "_pat_" + MIXED[:22] + "_" + MIXED[:59]),
    ("a GitLab token", "gl" + "pat-" + MIXED[:20]),
    ("a Bitbucket token", "ATB" + "B" + MIXED[:32]),
    ("an Atlassian token", "ATA" + "TT3" + MIXED[:80]),
    ("an npm token", "np" + "m_" + MIXED[:36]),
    ("a PyPI token", "pypi-" + "AgEIcHlwaS5vcmc" + MIXED[:60]),
    ("a Slack token", "xo" + "xb-123456789012-1234567890123-" + MIXED[:24]),
    ("a Slack token", "xa" + "pp-1-A0123456789-" + MIXED[:20]),
    ("an Anthropic key", "sk-" + "ant-api03-" + MIXED[:60]),
    ("an OpenAI key", "sk-" + "proj-" + MIXED[:48]),
    ("an OpenAI key", "sk-" + MIXED[:48]),
    ("a Stripe key", "sk" + "_live_" + MIXED[:24]),
    ("a Hugging Face token", "h" + "f_" + "abcdefghijklmnopqrSTUVWXYZabcdefgh"),
    ("a JSON web token", "ey" + "J" + MIXED[:33] + ".ey" + "J" + MIXED[:60] + "." + MIXED[:43]),
    ("a JSON web token", "token=ey" + "J" + MIXED[:20] + "." + MIXED * 20 + "." + MIXED[:43]),
    ("a bearer token", "Authorization: Bear" + "er " + MIXED[:40]),
    ("a bearer token", "curl -H 'authorization: bear" + "er " + HEX[:40] + "'"),
    ("HTTP basic credentials", "Authorization: Ba" + "sic " + b64("planck:quantum-7h")),
    ("a URL with a password", "postgres://shop:" + "hunt" + "er2@db.example.org/shop"),
    ("a URL with a password", "https://planck:" + MIXED[:20] + "@example.org/a.git"),
    ("a URL with a password", "redis://:" + "S3" + "gredient@cache:6379/0"),
    ("a URL with a password", "mongodb+srv://app:" + "p4ss" + "word!x@cluster0.example.net"),
    ("a password", "PASS" + "WORD=" + "hunt" + "er2"),
    ("a password", "DB_PASS" + "WORD=" + "Sup3r" + "S3cret!"),
    ("a password", "pass" + 'word: "' + "tr0ub4dor" + '&3"'),
    ("a password", "PGPASS" + "WORD='" + "qX7-plm2" + "'"),
    ("a password", '{\\"pass' + 'word\\": \\"' + "Xk29-aa1" + '\\"}'),
    ("a password", "pass" + 'word: str = "' + "tr0ub4dor" + '"'),
    ("a password", "mysql --pass" + "word " + "hunt" + "er2"),
    ("a password", "MYSQL_P" + "WD=" + "Zt5" + "kk9mm"),
    ("a password", "DB_PA" + "SS: " + "g00d-" + "b33r"),
    ("a password of curl", "curl -u admin:" + "hunt" + "er2 https://example.org"),
    ("a secret value", "API_" + "KEY=" + MIXED[:32]),
    ("a secret value", "client_" + 'secret = "' + HEX[:32] + '"'),
    ("a secret value", "SECRET_" + "KEY_BASE: " + HEX),
    ("a secret value", "auth_tok" + "en: '" + SMALL + "'"),
    ("a secret value", "--tok" + "en " + MIXED[:24]),
    ("a secret value", "PRIVATE_" + "KEY=0x" + HEX),
    ("a secret value", "MISTRAL_API_" + "KEY=" + MIXED[:32]),
    ("a secret value", "COHERE_API_" + "KEY=" + MIXED[:40]),
    ("a secret value", "DD_API_" + "KEY=" + HEX[:32]),
    ("a secret value", "CLOUDFLARE_API_TO" + "KEN=" + MIXED[:40]),
    ("a secret value", "HEROKU_API_" + "KEY=" + UUID),
    ("a secret value", "VERCEL_TO" + "KEN=" + MIXED[:24]),
    ("a cookie", "Coo" + "kie: theme=dark; session=" + MIXED[:32]),
    ("a cookie", "Set-Coo" + "kie: sid=s%3A" + MIXED[:32] + "; Path=/; HttpOnly"),
    ("a cookie", "curl -H 'coo" + "kie: sid=" + MIXED[:40] + "' https://example.org"),
    (
        "a private key in base64",
        "client-key-" + "data: " + b64("-----BEGIN RSA PRIV" + "ATE KEY-----\n" + MIXED),
    ),
    ("a private key in base64", "x: " + b64("-----BEGIN PRIV" + "ATE KEY-----\n" + MIXED)),
    ("a private key in base64", b64("-----BEGIN EC PRIV" + "ATE KEY-----\n" + MIXED)),
    ("a secret value", "client-" + "key-data: " + MIXED[:60]),
    ("a password of PostgreSQL", "db.example.org:5432:shop:planck:" + "hunt" + "er2"),
    ("a password of PostgreSQL", "# mine\n*:*:*:planck:" + "correct horse battery"),
    ("a password", "pass" + "word:\n  " + "tr0ub4dor" + "&3"),
    ("a password", "db:\n  pass" + "word: |-\n    " + "tr0ub4dor" + "&3\n"),
    ("a secret value", "api_" + "key: >\r\n  " + MIXED[:32]),
    ("a password", "Pass" + "wort: " + "tr0ub4dor" + "&3"),
    ("a password", "Das Pass" + "wort ist " + "Xk29aa17Qz"),
    ("a password", "Kenn" + "wort=" + "tr0ub4dor" + "&3"),
    ("a password", "contra" + "seña: " + "tr0ub4dor" + "&3"),
    ("a password", "mot de pas" + "se : " + "tr0ub4dor" + "&3"),
    ("a password", "sen" + "ha=" + "tr0ub4dor" + "&3"),
    ("a password", "par" + "ola: " + "tr0ub4dor" + "&3"),
    ("a password", "па" + "роль: " + "tr0ub4dor" + "&3"),
    ("a password", "密" + "码: " + "tr0ub4dor" + "&3"),
    ("a password", "パス" + "ワード: " + "tr0ub4dor" + "&3"),
    ("a password", "has" + "ło: " + "tr0ub4dor" + "&3"),
]

# The key formats of the 40 providers (and more) that developers use most; those above count as well.
PROVIDERS = [
    ("an AWS Bedrock key", "AB" + "SK" + b64(MIXED * 2)[:128]), ("a Google OAuth token", "ya" + "29." + MIXED[:60]),
    ("an Azure key", MIXED[:52] + "JQQ" + "J99" + MIXED[:26]), ("a DigitalOcean token", "do" + "p_v1_" + HEX),
    ("a Heroku key", "HR" + "KU-" + UUID), ("an Alibaba key", "LT" + "AI" + MIXED[:20]),
    ("a Cloudflare key", "v1" + ".0-" + HEX[:24] + "-" + HEX * 2), ("a Fly.io token", "Fly" + "V1 fm2_" + MIXED[:80]),
    ("a Netlify token", "nf" + "p_" + MIXED[:36]), ("a Vercel token", "vercel_" + "blob_rw_" + MIXED[:30]),
    ("a Render key", "rn" + "d_" + MIXED[:28]), ("a Pulumi token", "pu" + "l-" + HEX[:40]),
    ("a Tailscale key", "ts" + "key-auth-" + MIXED[:17] + "-" + MIXED[:32]),
    ("a GitLab token", "gl" + "rt-" + MIXED[:27] + ".01." + SMALL[:9]), ("a GitLab token", "GR" + "1348941" + MIXED[:20]),
    ("a RubyGems key", "ruby" + "gems_" + HEX[:48]), ("a NuGet key", "oy" + "2" + (SMALL * 2)[:43]),
    ("a crates.io token", "ci" + "o" + MIXED[:32]), ("a Clojars token", "CLO" + "JARS_" + HEX[:60]),
    ("a Docker token", "dckr" + "_pat_" + MIXED[:27]), ("an Artifactory key", "AK" + "Cp" + MIXED[:69]),
    ("a CircleCI token", "CCI" + "PAT_" + MIXED[:22] + "_" + HEX[:40]), ("a Buildkite token", "bk" + "ua_" + HEX[:40]),
    ("a SonarQube token", "sq" + "p_" + HEX[:40]), ("a Sourcegraph token", "sg" + "p_" + HEX[:40]),
    ("an OpenRouter key", "sk-" + "or-v1-" + HEX), ("a DeepSeek key", "sk-" + HEX[:32]), ("an ElevenLabs key", "sk" + "_" + HEX[:48]),
    ("a Groq key", "gs" + "k_" + MIXED[:52]), ("an xAI key", "xa" + "i-" + MIXED[:80]), ("a Replicate token", "r" + "8_" + MIXED[:37]),
    ("a Perplexity key", "pp" + "lx-" + MIXED[:48]), ("a Cerebras key", "cs" + "k-" + (SMALL * 2)[:48]),
    ("a Fireworks key", "f" + "w_" + MIXED[:24]), ("a Together key", "tgp" + "_v1_" + MIXED[:43]),
    ("an NVIDIA key", "nv" + "api-" + MIXED[:64]), ("a Tavily key", "tv" + "ly-" + MIXED[:32]),
    ("a LangSmith key", "ls" + "v2_pt_" + HEX[:32] + "_" + HEX[:10]), ("a Pinecone key", "pc" + "sk_" + MIXED[:6] + "_" + MIXED[:60]),
    ("a Slack webhook", "https://hooks.slack" + ".com/services/T0" + UPPER[:9] + "/B0" + UPPER[:9] + "/" + MIXED[:24]),
    ("a Discord webhook", "https://discord.com/api/web" + "hooks/123456789012345678/" + MIXED[:68]),
    ("a Telegram bot token", "1234567890" + ":A" + "A" + MIXED[:33]), ("a Twilio key", "S" + "K" + HEX[:32]),
    ("a SendGrid key", "S" + "G." + MIXED[:22] + "." + MIXED[:43]), ("a Mailgun key", "ke" + "y-" + HEX[:32]),
    ("a Mailchimp key", HEX[:32] + "-u" + "s12"), ("a Brevo key", "xkey" + "sib-" + HEX + "-" + MIXED[:16]),
    ("a Resend key", "r" + "e_" + MIXED[:8] + "_" + MIXED[:24]), ("a Stripe key", "rk" + "_test_" + MIXED[:24]),
    ("a Stripe webhook secret", "wh" + "sec_" + MIXED[:32]), ("a Square token", "sq" + "0atp-" + MIXED[:22]),
    ("a Square secret", "sq" + "0csp-" + MIXED[:43]), ("a Braintree token", "access_token$" + "production$" + SMALL[:16] + "$" + HEX[:32]),
    ("a Plaid token", "access-" + "production-" + UUID), ("a Shopify token", "sh" + "pat_" + HEX[:32]),
    ("a Vault token", "hv" + "s." + MIXED[:24]), ("a Terraform token", MIXED[:14] + ".atlas" + "v1." + MIXED[:67]),
    ("a Databricks token", "da" + "pi" + HEX[:32]), ("a Doppler token", "d" + "p.pt." + MIXED[:43]),
    ("a 1Password token", "ops" + "_ey" + "J" + b64(MIXED * 3)), ("a PlanetScale token", "ps" + "cale_tkn_" + MIXED[:43]),
    ("a Supabase token", "sb" + "p_" + HEX[:40]), ("a Supabase key", "sb" + "_secret_" + MIXED[:31]),
    ("a Neon key", "na" + "pi_" + (SMALL * 2)[:64]), ("a MongoDB Atlas secret", "mdb" + "_sa_sk_" + MIXED[:40]),
    ("a New Relic key", "NR" + "AK-" + UPPER[:27]), ("a Grafana token", "gl" + "sa_" + MIXED[:32] + "_" + HEX[:8]),
    ("a Sentry token", "sn" + "tryu_" + HEX), ("a Dynatrace token", "dt0" + "c01." + UPPER[:24] + "." + (UPPER * 3)[:64]),
    ("a LaunchDarkly key", "sd" + "k-" + UUID), ("an Airtable token", "pa" + "t" + MIXED[:14] + "." + HEX),
    ("a Figma token", "fi" + "gd_" + MIXED[:40]), ("a HubSpot token", "pat-" + "na1-" + UUID), ("a Linear key", "lin" + "_api_" + MIXED[:40]),
    ("a Notion token", "nt" + "n_" + MIXED[:46]), ("a Notion token", "sec" + "ret_" + MIXED[:43]),
    ("a Postman key", "PM" + "AK-" + HEX[:24] + "-" + HEX[:34]), ("a Contentful token", "CF" + "PAT-" + MIXED[:43]),
    ("a Mapbox token", "sk." + "ey" + "J" + MIXED[:60] + "." + MIXED[:22]), ("an age key", "AGE-SECRET-" + "KEY-1" + (UPPER * 2)[:58]),
]  # fmt: skip

PROVIDERS += [
    ("a Discord token", b64("198622483471925248") + ".Cl2FMQ" + ".ZnCjm1XVW7vRze4b7Cq4se7kKWs"),
    ("a Discord token", b64("1098622483471925248").rstrip("=") + ".GkQX1z." + MIXED[:38]),
    ("a Doppler token", "d" + "p.st.prd." + MIXED[:43]), ("a Doppler token", "d" + "p.st.dev_planck." + MIXED[:43]),
    ("an Azure SAS signature", "https://shop.blob.core.windows.net/a/b?sv=2022-11-02&se=2027-01-01&sr=c&sp=r&s" + "ig=" + MIXED[:43] + "%3D"),
    ("an Azure SAS signature", "sr=b&s" + "ig=" + MIXED[:20] + "%2F" + MIXED[20:42] + "%3D"),
    ("an Azure DevOps token", MIXED[:76] + "AZ" + "DO" + MIXED[:4]), ("an AWS signed URL", "X-Amz-Sig" + "nature=" + HEX),
    ("an Amazon MWS token", "amzn" + ".mws." + UUID), ("a Google API key", "AQ" + ".Ab8RN6" + MIXED[:44]),
    ("a Google signed URL", "X-Goog-Sig" + "nature=" + HEX * 8), ("a Firebase key", "AAAA" + MIXED[:7] + ":APA" + "91b" + (MIXED * 2)[:134]),
    ("a Facebook token", "EAA" + "CEdEose0cBA" + (MIXED * 2)[:170]), ("a Flutterwave key", "FLW" + "SECK-" + HEX[:32] + "-X"),
    ("a Flutterwave key", "FLW" + "SECK_TEST-" + HEX[:12]), ("a DigitalOcean key", "DO" + "00" + UPPER[8:24]),
    ("a Cloudflare token", "cfu" + "t_" + MIXED[:48]), ("a Fly.io token", "fo" + "1_" + MIXED[:43]), ("a Netlify token", "nf" + "u_" + MIXED[:36]),
    ("a Vercel token", "vc" + "i_" + MIXED[:56]), ("a Tencent key", "AK" + "ID" + MIXED[:32]), ("a Yandex key", "AQ" + "VN" + MIXED[:36]),
    ("a Scalingo token", "tk-" + "us-" + MIXED[:48]), ("an Infracost key", "ic" + "o-" + MIXED[:32]),
    ("an Artifactory key", "cmVm" + "dGtuOj" + MIXED[:54]), ("a Packagist token", "pack" + "agist_uut_" + HEX),
    ("a CircleCI token", "CCI" + "PRJ_" + MIXED[:22] + "_" + HEX[:40]), ("a Buildkite token", "bk" + "ct_" + MIXED[:40]),
    ("a Harness token", "pa" + "t." + MIXED[:22] + "." + HEX[:24] + "." + MIXED[:20]), ("an Octopus Deploy key", "AP" + "I-" + UPPER[2:28]),
    ("a Depot token", "dep" + "ot_org_" + HEX), ("a Prefect key", "pn" + "u_" + SMALL[:36]), ("a Snyk token", "sn" + "yk_uat." + HEX[:8] + "." + MIXED[:80]),
    ("a Hugging Face token", "api" + "_org_" + "abcdefghijklmnopqrSTUVWXYZabcdefgh"), ("a Langfuse key", "sk-" + "lf-" + UUID),
    ("a Jina key", "ji" + "na_" + MIXED[:60]), ("a Firecrawl key", "f" + "c-" + HEX[:32]), ("a Brave key", "BS" + "A" + MIXED[:28]),
    ("an E2B key", "e2" + "b_" + HEX[:40]), ("a Modal token", "a" + "k-" + MIXED[:22]), ("a Weights & Biases key", "wan" + "db_v1_" + MIXED),
    ("a Cursor key", "cr" + "sr_" + HEX), ("a Slack token", "xo" + "xc-123456789012-" + HEX), ("a Slack token", "xo" + "xd-" + MIXED[:40] + "%2B" + MIXED[:20]),
    ("a Twilio token", "A" + "C" + HEX[:32] + ":" + HEX[32:]), ("a Twitch token", "oau" + "th:" + SMALL[:30]),
    ("a Zapier webhook", "https://hooks.zap" + "ier.com/hooks/catch/1234567/" + SMALL[:7]), ("a Brevo key", "xsmtp" + "sib-" + HEX + "-" + MIXED[:16]),
    ("a Stripe key", "sk" + "_org_live_" + MIXED[:24]), ("a Square token", "EA" + "AA" + MIXED[:60]), ("a Square secret", "sandbox-sq" + "0csb-" + MIXED[:43]),
    ("a Braintree token", "access_token$" + "sandbox$" + SMALL[:16] + "$" + HEX[:32]), ("a Plaid token", "access-" + "sandbox-" + UUID),
    ("a PayPal token", "A21" + "AA" + MIXED), ("a Checkout.com key", "sk" + "_" + UUID), ("a Razorpay key", "rz" + "p_live_" + MIXED[:14]),
    ("a Mollie key", "li" + "ve_" + MIXED[:30]), ("a Shippo token", "ship" + "po_live_" + HEX[:40]), ("an EasyPost key", "EZ" + "AK" + MIXED[:54]),
    ("a Supabase token", "sb" + "p_v0_" + HEX[:40]), ("a CockroachDB key", "CC" + "DB1_" + MIXED[:22] + "_" + MIXED[:40]),
    ("a Databricks token", "do" + "se" + HEX[:32]), ("a New Relic key", HEX[:36] + "NR" + "AL"), ("a New Relic key", "NR" + "II-" + MIXED[:32]),
    ("a Datadog token", "dd" + "pat_" + MIXED[:32]), ("an Axiom token", "xa" + "at-" + UUID), ("a PostHog key", "ph" + "x_" + MIXED[:43]),
    ("a Honeycomb key", "hca" + "ik_" + (SMALL * 2)[:58]), ("a Grafana key", "eyJr" + "Ijoi" + MIXED[:70]), ("a Figma token", "fi" + "go_" + MIXED[:40]),
    ("a Trello token", "AT" + "TA" + HEX + "ABCD1234"), ("a ClickUp token", "p" + "k_12345678_" + (UPPER + "2345")[:32]),
    ("a Dropbox token", "s" + "l." + MIXED * 2), ("a Dropbox token", "s" + "l.u." + MIXED * 2), ("a Typeform token", "tf" + "p_" + MIXED[:44]),
    ("a ReadMe key", "rd" + "me_" + (SMALL * 2)[:70]), ("a Statsig key", "sec" + "ret-" + MIXED[:43]), ("a Linear token", "lin" + "_oauth_" + HEX),
    ("a private JSON web key", '{"kty": "OKP", "d"' + ': "' + MIXED[:43] + '"}'), ("a private JSON web key", '{"d"' + ':"' + MIXED[:43] + '"}'),
]  # fmt: skip

# In command lines, headers, settings and sentences: no marker gives these away, only what stands before them.
SAID = [
    ("a secret value", "X-Api-" + "Key: " + SMALL[:32]), ("a secret value", "curl -H 'x-api-" + "key: " + MIXED[:32] + "'"),
    ("a secret value", "Ocp-Apim-Subscription-" + "Key: " + HEX[:32]), ("a secret value", "DD-APPLICATION-" + "KEY: " + HEX[:40]),
    ("a secret value", "DD_APP_" + "KEY=" + HEX[:40]), ("a secret value", "NEW_RELIC_LICENSE_" + "KEY=" + HEX[:40]),
    ("a secret value", "X-Auth-" + "Key: " + HEX[:37]), ("a secret value", "RAILWAY_TO" + "KEN=" + UUID), ("a secret value", "NPM_TO" + "KEN=" + UUID),
    ("a secret value", "//registry.npmjs.org/:_auth" + "Token=" + UUID), ("a secret value", "Authorization: tok" + "en " + HEX[:40]),
    ("a secret value", "Authorization: SS" + "WS 00" + MIXED[:40]), ("a secret value", "Authoriz" + "ation: " + MIXED[:40]),
    ("HTTP basic credentials", '{"auths": {"example.org": {"au' + 'th": "' + b64("planck:quantum-7h") + '"}}}'),
    ("a password", "mysql -uroot -p" + "S3cr3tPa55" + " shop"), ("a password", "mysqldump -h db -u app -p" + "Xk29dkfj2" + " shop"),
    ("a password", "mariadb -u root -p'" + "Xk29dkfj2!" + "' shop"), ("a password", "sshpass -p " + "Xk29dkfj2" + " ssh root@host"),
    ("a password", "docker login -u planck -p " + "Xk29dkfj2" + " registry.example.org"), ("a password", "redis-cli -h cache -a " + "Xk29dkfj2" + " ping"),
    ("a password", "unzip -P " + "Xk29dkfj2" + " a.zip"), ("a password of curl", "curl -uadmin:" + "Xk29dkfj2" + " https://example.org"),
    ("a password of curl", "curl --user=admin:" + "Xk29dkfj2" + " https://example.org"), ("an AWS secret key", "AWS sec" + "ret key " + MIXED[:40]),
    ("an AWS secret key", "the AWS sec" + "ret access key is " + MIXED[:40]), ("a password", "pass" + "wd " + "Xk29dkfj2"),
    ("a password", "the pass" + "word is " + "Xk29dkfj2" + "."), ("a password", "changed the pass" + "word to " + "Xk29dkfj2"),
    ("a password", "machine api.example.org login planck pass" + "word " + "Xk29dkfj2"), ("a password", "pass" + "word -> " + "Xk29dkfj2"),
    ("a secret value", "my API " + "key is " + MIXED[:32]), ("a secret value", "API " + "key: " + HEX[:32]),
    ("a secret value", "the tok" + "en is " + MIXED[:40]), ("a secret value", "the client sec" + "ret was " + SMALL[:32]),
]  # fmt: skip

HARMLESS = [
    "Cookie: the browser drops it; SameSite=Lax; Path=/ and HttpOnly=true",
    "password:\n  type: string\n  description: at least 12 characters",
    "token: |\n  see the section on tokens",
    "senha: obrigatória, com ao menos 12 caracteres",
    "Das Passwort ist Pflicht",
    "psql: error: connection to localhost:5432: refused",
    "2026-11-27 10:00:01 db:5432:shop ready",
    "client-key-data: <base64 of the key>",
    "certificate-authority-data: " + b64("-----BEGIN CERTIFICATE-----\n" + MIXED),
    "password sha256", "passwd bcrypt12", "the password is argon2id", "password RFC7617", "password hashes use PBKDF2-HMAC-SHA256",
    "the password is at least 12 characters", "the password is in 1Password", "password to UTF8-encoded", "token " + HEX[:40],
    "the token of " + HEX[:40], "token sig-3f9k2m7q1x0z", "the secret is in vault-2024-production-eu-west-1", "the api key is rotated every 90 days",
    "token TOKEN_KIND_IDENTIFIER_2_WITH_ARGUMENTS", "access key ids begin with four letters", "secret key rotation 2026-11-22T10:00:00Z",
    "mysql -p3306 shop", "mysql -u root -p shop", "mysql -uroot -p$MYSQL_PWD2 shop", "docker login -u planck -p \"$TOKEN2\"", "mkdir -p a1b2/c3 && mysql",
    "cp -a src2/x1 redis-cli/", "unzip -P $ZIP2 a.zip", "git push -u origin:main2 && ls", "author: planck, authority 2", "authorization: none", '"auth": "required"',
    "Authorization: Digest username=planck", "authorization code " + HEX[:40], "_auth=${NPM_AUTH}", "PAGE_TOKEN: " + UUID, "X-Request-Id: " + UUID,
    "X-Api-Key: <your key>", "cache-key: npm-linux-x64-" + HEX[:40], "Idempotency-Key: " + UUID, "primary_key = order_line_2026_id", "sort_key=2026-11-22T10:00:00Z",
    "https://example.org/a?sig=abc", "sig=" + HEX, "?sig=sig-3f9k2m7q1x0z", "v1.2.3-rc.4", "MTIz.abcdef.ghi", "github.com.abcdef.example.org.with.a.long.name.that.goes.on",
    "dp.st.prd", "dp.state.production.configuration.of.the.shop", "EAACCESS", "EAAAAAAA" * 20, "FLWSECK-", "API-REFERENCE-2026", "live_reload_is_on_2", "sl.no",
    "M10 20c1-2 3-4", '{"d":"M12 2C6.48 2 2 6.48 2 12s4.48 10 10 10 10-4.48 10-10S17.52 2 12 2z"}', "pat.example.org", "fc-cache -f", "as-is", "cfk_", "depot_manager",
    "key_" + "a" * 64, "AKIDS", "X-Amz-Signature=<hex>", "oauth:2.0", "Pipfile.lock: \"sha256:" + HEX + "\"", "checksum = \"" + HEX + "\"",
    "    \"node_modules/a\": {\"version\": \"1.2.3\", \"resolved\": \"https://registry.npmjs.org/a/-/a-1.2.3.tgz\", \"integrity\": \"sha512-"
    + base64.b64encode(hashlib.sha512(b"w").digest()).decode() + "\"}",
    "ASIAN and AKIAN, ASIA-PACIFIC",
    "AKIA" + "IOSFODNN7" + "EXAMPLE",
    "sk-learn", "sk-learn-2024-classification-of-long-branch-names-v3",
    "task-0123456789abcdefABCDEF0123456789abcdef",
    hashlib.sha1(b"x").hexdigest(), hashlib.sha256(b"x").hexdigest(),
    base64.b64encode(hashlib.sha512(b"x").digest() * 20).decode(),
    "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 8).decode(),
    "ghp_ is the prefix of a GitHub token, glpat- of a GitLab one", "ghp_XXXX", "glpat-your-token-goes-here-please",
    "secret_key = os.environ['SECRET_KEY']", "aws_secret_access_key = <yours>", "SecretAccessKey: !Ref Key",
    "-----BEGIN " + "PUBLIC KEY-----", "-----BEGIN CERTIFICATE-----", "the PRIVATE KEY is in the vault",
    "npm_config_registry=https://registry.example.org/with/a/very/long/path", "npm_package_dependencies_left_pad_version",
    "hf_hub_download(repo_id=name, filename=file)", "AccountKey=${AZURE_KEY}", "xoxo, Curie", "inbox-box-xoxb-",
    "0198c6f0-2f7e-7c31-b1c5-d1d9b2c7a1e0", "codex:implementer:host42@gitmem", "pypi-AgEnt", "sk-ant-",
    "FAQ~answers", "~/.ssh/id_ed25519", "sk_live_ and sk_test_ keys", "",
    "password=\"\"", "password=''", "password: str", "password: str = ''", "password: Optional[str] = None", "password: bytes32",
    "password = getpass.getpass()", "password = os.environ['DB_PASSWORD']", "password=${DB_PASSWORD}", "PASSWORD=$DB_PASSWORD_2",
    "PASSWORD=<your password>", "password: {{ vault_db_password_1 }}", "password = user.password2", "password=changeme123",
    "PASSWORD=xxxxxxxx1", "password: ********", "password=password123", "password_file=/run/secrets/db1", "password = value12",
    "passwordHash: $2b$12$KIXQ0aB3dE6gH9jK2mN5pO", "password_hash = argon2id", "the password: at least 8 characters, 1 digit",
    "if password == confirm_password_2:", "tests pass: 3.11, 3.12, 3.13; fail: 0", "pass: 120.5ms", "pwd: /home/planck/work1",
    "PWD=/home/planck/work1", "password: 'must have 1 digit and 1 sign'", "password = :pw1", "WHERE password = $1",
    "token: Token2", "tokens: 128000 of 200000", "max_tokens=4096", "token_count=12345678901234567890", "TOKEN=$(gh auth token)",
    "token = next(tokens)", "token: Annotated[str, Header()]", "the token bucket refills at 100/s: fine", "token=abc123",
    "unexpected token: identifier_at_line_12", "next_page_token_id: " + UUID, "continuation_token: " + UUID,
    "secretName: my-app-tls-2024-certificate-v2", "secret: my-service-credentials-prod-2", "secretKeyRef: { name: db2, key: url }",
    "API_KEY=your-api-key-goes-here-1234", "apiKey: process.env.SHOP_API_KEY_V2", "api_key = settings.api_key_2.production.value",
    "credential.helper=/usr/lib/git-core/git-credential-libsecret1", "token_url: https://login.example.org/oauth2/v2.0/tok3n",
    "secret = hashlib.sha256(b'x').hexdigest()", "https://example.org/a:b@c", "https://example.org:8443/path@v2",
    "ssh://git@example.org:2222/a.git", "git@example.org:a/b.git", "https://user@example.org/", "postgres://shop:password@localhost/shop",
    "postgres://postgres:postgres@localhost:5432", "amqp://${USER}:${PASS}@host", "scheme://user:pass@host", "http://localhost:8080/@scope/a",
    "docker://nginx:1.25@sha256:" + HEX, "Bearer of good news in 2026, at 10", "Authorization: Bearer <token>", "Bearer ${TOKEN}",
    "basic training and Basic functionality", "sort -u a:b2 | curl -s -o out", "curl -u $USER:$PASS https://example.org",
    '"integrity": "sha512-' + base64.b64encode(hashlib.sha512(b"y").digest()).decode() + '"',
    "resolved https://registry.example.org/a/-/a-1.2.3.tgz#" + HEX[:40], "h1:" + base64.b64encode(hashlib.sha256(b"z").digest()).decode(),
    "sha256:" + HEX, "commit " + HEX[:40], UUID, "index 3f9a2c7..1b5d804 100644", "gitmem thread thread-8w4n6t2c5y1r sig-3f9k2m7q1x0z",
    "/nix/store/" + SMALL[:32] + "-glibc-2.38/lib/libc.so.6", "~/.cache/pip/http-v2/a/b/c/d/e/" + HEX[:56],
    "The key of the map is the session id, the value its secret-free record.", "cursor-3-shortcuts", "re_entrant_lock_is_held",
    "key-value store", "SKU1234567890", "patch-0001.diff", "sdk-android-1.2", "dp.com", "hvs.com", "def fw_update(self):", "shpat_",
]  # fmt: skip


EVERY = [*SECRETS, *PROVIDERS, *SAID]


def test_the_lists_are_as_long_as_they_should_be() -> None:
    assert len(SECRETS) >= 60 and len(HARMLESS) >= 60
    assert len({what for what, _ in EVERY}) >= 60  # kinds
    assert len({what.split(" ")[1] for what, _ in EVERY}) >= 60  # providers, and what has none


@each(EVERY)
def test_a_secret_is_named(what: str, text: str) -> None:
    """Alone, in a sentence, in quotes, in brackets, on a line of its own; and with its place."""
    for around in ("{}", "use {} please", "a\n{}\nb", "see: {}", "({})", "`{}`"):
        found = locate(around.format(text))
        assert found is not None
        assert found.what == what
        assert around.index("{") < found.at <= len(around.format(text))
    assert len(text) >= SHORTEST
    assert may_hold_secret([text]) and may_hold_secret([True, "short", [text]])
    for value in ({"a": [{"b": (text,)}]}, {text: None}):
        found = find_in(value)
        assert found is not None and found.what == what


@pytest.mark.parametrize("sign", ["\u200b", "\u00ad", "\ufe0f", "\u034f", "\U000e0041", "\u0301"])
def test_invisible_characters_hide_no_secret(sign: str) -> None:
    """Between any two characters; fullwidth forms neither."""
    hidden = [(what, sign.join(text)) for what, text in EVERY]
    assert [(what, text) for what, text in hidden if find_secret(text) != what] == []
    assert [text for _, text in hidden if not may_hold_secret([text])] == []


def test_wide_forms_hide_no_secret_and_its_place_is_that_of_the_text() -> None:
    """Places are counted in the text that was given, not in the one that was searched."""
    token = "np" + "m_" + MIXED[:36]
    found = locate(
        "\u200b\u200bＡ: " + "".join(chr(ord(char) + 0xFEE0) if char != "_" else "＿" for char in token)
    )

    assert found is not None
    assert (found.what, found.at) == ("an npm token", 6)


@each(HARMLESS)
def test_what_is_no_secret_passes(text: str) -> None:
    """Hashes, ids, code, documentation and base64 are said every day."""
    for around in ("{}", "see {}", '"{}"', "a\n{}\nb"):
        assert find_secret(around.format(text)) is None
    assert find_in([text, {"a": text}]) is None


def test_an_everyday_message_is_not_even_looked_at() -> None:
    """The quick search lets plain talk pass."""
    assert not may_hold_secret(
        ["Approve this boundary? The parser stays in records.", True, ["a:b:c"], "0" * 64]
    )
    assert may_hold_secret([{"nested": "x"}])


def test_the_refusal_names_the_secret_and_its_place_and_does_not_repeat_it() -> None:
    """It may end up in another log."""
    token = "gh" + "p_" + MIXED[:36]
    fields = {
        "signal_id": "sig-0001",
        "sender_identity": "a:b:c",
        "message": f"use {token}",
        "recipients": [],
    }

    with pytest.raises(UsageError) as refused:
        record_lines.line("signal", 1_795_291_200_000_000, fields)

    assert "message seems to contain a GitHub token at character 5" in refused.value.message
    assert not any(
        token[:8] in str(each) for each in (refused.value.message, refused.value.hint, refused.value.next)
    )


def test_a_text_with_secrets_is_searched_without_re() -> None:
    """To import it, and to compile expressions, would take longer than to send."""
    code = (
        "import sys; from gitmem.text.secrets import find_secret;"
        f" assert find_secret({'PASS' + 'WORD=' + 'hunt' + 'er2'!r}); assert find_secret({'gh' + 'p_' + MIXED[:36]!r});"
        " assert 're' not in sys.modules"
    )

    subprocess.run([sys.executable, "-S", "-c", code], check=True, timeout=60)


def test_no_format_is_shorter_than_the_words_that_are_looked_at() -> None:
    """Shorter words are left out of the search for markers."""
    for what, markers, before, steps_after, _ in FORMATS:
        if " " in markers:
            continue
        size = min(map(len, markers.split("|"))) + (
            sum(int(step[1:]) for step in before.split(" ")) if before[-1].isdigit() else 0
        )
        for step in steps_after.split(" "):
            size += len(step) - 1 if step[0] == "=" else int(step[1:].rstrip("+").partition("-")[0])
        assert size >= FORMAT_SHORTEST, what


def test_plain_talk_is_searched_without_the_tables() -> None:
    """A message without a marker imports neither formats nor names."""
    code = (
        "import sys; from gitmem.text import secrets as s;"
        " assert not s.may_hold_secret(['a plain message about src/orders/checkout.py, agreed', 'a:b:c', True, ['x']]);"
        " assert s.find_secret('another one, e.g. of 3.14.15') is None;"
        " print([name for name in sys.modules if name == 'gitmem.text.secret_rules'])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True
    )

    assert done.stdout.strip() == "[]"


JOINTS = ("", "-", "_", "a", "A1b2", '"', " ", "=", ": ", ".", "\u200b")


FEW = (
    "eyJ",
    "hooks.slack.com/",
    "-us",
    "://",
    "password",
    "bearer ",
    "curl ",
    " -p",
    "a.abcdef.",
)


@pytest.mark.parametrize(
    "marker",
    [
        marker if marker in FEW else pytest.param(marker, marks=pytest.mark.deep)
        for marker in (*MARKERS, *WORDS, *PROSE_WORDS, "mysql -p", "a.abcdef.", "password is ")
    ],
)
def test_the_work_grows_no_faster_than_the_text(marker: str) -> None:
    """Counted in lines of code that run and characters that they look at most at once: a busy machine changes nothing."""
    for joint in JOINTS:
        word = marker + joint
        few, many = (steps(find_secret, word * (size // len(word))) for size in (500, 4_000))
        assert many <= 10 * few + 1_000, joint
    for joint in ("a", "A1", "=", "-"):
        assert (
            steps(find_secret, marker + joint * 2_000) <= 1.5 * steps(find_secret, marker + joint * 250) + 250
        )


def steps(call: Callable[[str], object], text: str) -> int:
    """How many lines of code a call runs, after everything that is made once was made."""
    call(text)
    count = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call(text)
    finally:
        sys.settrace(before)
    return count


def test_working_notes_and_the_pages_of_this_project_pass() -> None:
    """Agents quote documentation to each other all day; only the command that shows a refusal is refused."""
    from benchmarks import messages

    root = Path(__file__).resolve().parents[2]
    paths = [root / "docs/troubleshooting.md", root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    pages = [path.read_text(encoding="utf-8") for path in dict.fromkeys(paths)]

    (refused,) = (each for each in pages[0].splitlines() if SHOWN_AS_REFUSED in each)
    assert locate(refused) is not None
    pages[0] = pages[0].replace(refused, "")
    assert [
        found.what for text in [*messages.USUAL, *messages.SHORT, *pages] if (found := locate(text))
    ] == []
