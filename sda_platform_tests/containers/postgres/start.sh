set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    printf '%s' "$POSTGRES_PASSWORD" > /tmp/password
    initdb --username="$POSTGRES_USER" --pwfile=/tmp/password --auth-local=trust --auth-host=scram-sha-256 > /dev/null
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    pg_ctl --wait --options="-c listen_addresses=''" start > /dev/null
    createdb --username="$POSTGRES_USER" "$POSTGRES_DB"
    for script in /docker-entrypoint-initdb.d/*.sql; do
        psql --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" --set ON_ERROR_STOP=1 --file="$script"
    done
    pg_ctl --wait stop > /dev/null
fi
exec postgres -c listen_addresses='*'
